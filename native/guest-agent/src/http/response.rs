//! Answers: JSON, errors, streams.

use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::body::AgentBody;
use crate::errors::GuestError;

pub type AgentResponse = Response<AgentBody>;

pub const FRAMES: HeaderValue = HeaderValue::from_static("application/vnd.sandglass.frames");
pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");
pub const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");
pub const TAR: HeaderValue = HeaderValue::from_static("application/x-tar");

pub fn json<T: Serialize>(status: StatusCode, value: &T) -> AgentResponse {
    match serde_json::to_vec(value) {
        Ok(bytes) => with_type(status, JSON, AgentBody::whole(bytes)),
        Err(cause) => error(&GuestError::internal(format!(
            "The answer could not be written as JSON: {cause}."
        ))),
    }
}

pub fn error(error: &GuestError) -> AgentResponse {
    // Two strings always serialise; an empty body is the answer that cannot fail in turn.
    let bytes = serde_json::to_vec(&error.body()).unwrap_or_default();
    with_type(error.code.status(), JSON, AgentBody::whole(bytes))
}

pub fn no_content() -> AgentResponse {
    let mut response = Response::new(AgentBody::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

pub fn with_type(status: StatusCode, content_type: HeaderValue, body: AgentBody) -> AgentResponse {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// Sets a header made from numbers and fixed text; such a value is always a legal one.
pub fn set_header(response: &mut AgentResponse, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
