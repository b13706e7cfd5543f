//! The route table: one line per endpoint.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Method, Request};

use super::response::{self, AgentResponse};
use crate::agent::Agent;
use crate::errors::{ErrorCode, GuestError, Outcome};
use crate::files::archive_routes as archives;
use crate::files::routes::{self as files, Transfer};
use crate::files::watch_routes;
use crate::health;
use crate::process::routes as processes;

pub async fn handle(agent: Arc<Agent>, request: Request<Incoming>) -> Result<AgentResponse, Infallible> {
    Ok(route(&agent, request)
        .await
        .unwrap_or_else(|error| response::error(&error)))
}

async fn route(agent: &Arc<Agent>, request: Request<Incoming>) -> Outcome<AgentResponse> {
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let segments: Vec<&str> = path.strip_prefix("/v1/").unwrap_or_default().split('/').collect();
    match (method, segments.as_slice()) {
        (Method::GET, ["health"]) => health::health(agent, &request),
        (Method::PUT, ["identity"]) => health::put_identity(agent, request).await,
        (Method::GET, ["metrics"]) => health::metrics(request).await,

        (Method::POST, ["exec"]) => processes::exec(agent, request).await,
        (Method::POST, ["processes"]) => processes::create(agent, request).await,
        (Method::GET, ["processes"]) => processes::list(agent, request).await,
        (Method::GET, ["processes", id]) => processes::get(agent, request, id).await,
        (Method::DELETE, ["processes", id]) => processes::forget(agent, request, id).await,
        (Method::POST, ["processes", id, "signal"]) => processes::signal(agent, request, id).await,
        (Method::POST, ["processes", id, "stdin"]) => processes::write_stdin(agent, request, id).await,
        (Method::POST, ["processes", id, "resize"]) => processes::resize(agent, request, id).await,
        (Method::GET, ["processes", id, "output"]) => processes::output(agent, request, id).await,

        (Method::GET | Method::HEAD, ["files"]) => files::read(request).await,
        (Method::PUT, ["files"]) => files::write(request).await,
        (Method::DELETE, ["files"]) => files::delete(agent, request).await,
        (Method::GET, ["files", "stat"]) => files::describe(request).await,
        (Method::GET, ["files", "list"]) => files::list(agent, request).await,
        (Method::GET, ["files", "archive"]) => archives::read(request).await,
        (Method::PUT, ["files", "archive"]) => archives::write(request).await,
        (Method::GET, ["files", "watch"]) => watch_routes::watch(agent, request).await,
        (Method::POST, ["files", "mkdir"]) => files::make_directory(request).await,
        (Method::POST, ["files", "move"]) => files::transfer(agent, request, Transfer::Move).await,
        (Method::POST, ["files", "copy"]) => files::transfer(agent, request, Transfer::Copy).await,
        (Method::POST, ["files", "chmod"]) => files::change_mode(agent, request).await,

        (_, segments) if is_known(segments) => Err(GuestError::new(
            ErrorCode::MethodNotAllowed,
            "The endpoint does not take this method; see the protocol.",
        )),
        _ => Err(GuestError::new(
            ErrorCode::RouteNotFound,
            "There is no such endpoint; see the protocol.",
        )),
    }
}

fn is_known(segments: &[&str]) -> bool {
    matches!(
        segments,
        ["health" | "identity" | "metrics" | "exec" | "processes" | "files"]
            | ["processes", _]
            | [
                "files",
                "stat" | "list" | "mkdir" | "move" | "copy" | "chmod" | "archive" | "watch"
            ]
            | ["processes", _, "signal" | "stdin" | "resize" | "output"]
    )
}
