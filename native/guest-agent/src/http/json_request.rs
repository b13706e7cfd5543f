//! JSON request bodies: bounded, UTF-8, unknown fields refused by the types themselves.

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use serde::de::DeserializeOwned;

use crate::errors::{GuestError, Outcome};
use crate::limits::JSON_BODY_MAX_BYTES;

pub async fn read<T: DeserializeOwned>(body: Incoming) -> Outcome<T> {
    let bytes = match Limited::new(body, JSON_BODY_MAX_BYTES).collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(cause) if cause.is::<LengthLimitError>() => {
            return Err(GuestError::invalid(format!(
                "The body is longer than {JSON_BODY_MAX_BYTES} bytes; send less."
            )));
        }
        Err(_) => return Err(GuestError::invalid("The body ended early; send it again.")),
    };
    parse(&bytes)
}

pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Outcome<T> {
    serde_json::from_slice(bytes)
        .map_err(|cause| GuestError::invalid(format!("The body is not as described: {cause}.")))
}
