//! Endpoints of processes.

use std::sync::Arc;

use hyper::HeaderMap;
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use serde::Serialize;
use tokio::sync::oneshot;

use super::follow::{FollowEnd, Until, await_short, follow};
use super::lineage::{self, Snapshot};
use super::pty;
use super::record::{PerStream, Record, Stream};
use super::signals::SignalBody;
use super::start::{Started, start};
use super::start_request::{StartProcess, TerminalSize};
use super::stdin;
use super::stdin_stream;
use super::terminate;
use super::view::{ProcessView, StdinView, Usage, view};
use crate::agent::Agent;
use crate::blocking::run_blocking;
use crate::errors::{ErrorCode, GuestError, Outcome};
use crate::http::body::AgentBody;
use crate::http::json_request;
use crate::http::query::Query;
use crate::http::response::{AgentResponse, FRAMES, NDJSON, json, no_content, with_type};
use crate::limits::KEY_MAX_BYTES;

#[derive(Serialize)]
struct Items {
    items: Vec<ProcessView>,
}

pub async fn create(agent: &Arc<Agent>, request: Request<Incoming>) -> Outcome<AgentResponse> {
    Query::parse(request.uri().query(), &[])?;
    let body: StartProcess = json_request::read(request.into_body()).await?;
    let started = start(agent, body.check(&agent.fingerprints)?).await?;
    let status = if started.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok(json(status, &view(&started.record, Usage::default())))
}

pub async fn exec(agent: &Arc<Agent>, request: Request<Incoming>) -> Outcome<AgentResponse> {
    let query = Query::parse(request.uri().query(), &["kill_on_disconnect"])?;
    let kill_on_disconnect = query.flag("kill_on_disconnect")?.unwrap_or(false);
    let body: StartProcess = json_request::read(request.into_body()).await?;
    let Started { record, follower, .. } = start(agent, body.check(&agent.fingerprints)?).await?;
    let (sender, body) = AgentBody::stream();
    let positions = PerStream {
        stdout: Some(0),
        stderr: Some(0),
    };
    let (begin, begun) = oneshot::channel();
    tokio::spawn(async move {
        await_short(&record, &sender).await;
        // Nobody listens any more when the client has gone; `follow` finds that out.
        let _ = begin.send(());
        let end = follow(follower, positions, Until::Exit, sender).await;
        if end == FollowEnd::ClientGone && kill_on_disconnect {
            terminate::end_tree(&record, record.facts.kill_grace).await;
        }
    });
    // The head goes out with the first bytes of the body. Without a beginning the body says so.
    let _ = begun.await;
    Ok(with_type(StatusCode::OK, FRAMES, body.settled()))
}

pub async fn list(agent: &Arc<Agent>, request: Request<Incoming>) -> Outcome<AgentResponse> {
    Query::parse(request.uri().query(), &[])?;
    let records = agent.table.all();
    let items = run_blocking(move || {
        let snapshot = Snapshot::take();
        Ok(records.iter().map(|record| viewed(record, &snapshot)).collect())
    })
    .await?;
    Ok(json(StatusCode::OK, &Items { items }))
}

pub async fn get(agent: &Arc<Agent>, request: Request<Incoming>, segment: &str) -> Outcome<AgentResponse> {
    Query::parse(request.uri().query(), &[])?;
    answer(agent.table.find(segment)?).await
}

pub async fn forget(agent: &Arc<Agent>, request: Request<Incoming>, segment: &str) -> Outcome<AgentResponse> {
    Query::parse(request.uri().query(), &[])?;
    let record = agent.table.find(segment)?;
    if record.look(|changing| changing.ended.is_none()) {
        return Err(GuestError::new(
            ErrorCode::ProcessRunning,
            "The process still runs; end it first.",
        ));
    }
    agent.table.forget(&record.facts.id);
    Ok(no_content())
}

pub async fn signal(agent: &Arc<Agent>, request: Request<Incoming>, segment: &str) -> Outcome<AgentResponse> {
    Query::parse(request.uri().query(), &[])?;
    let body: SignalBody = json_request::read(request.into_body()).await?;
    let record = agent.table.find(segment)?;
    let number = body.signal.number()?;
    let reached = match (body.tree, number) {
        // What forks meanwhile is found by further looks; the answer says that nothing is left.
        (true, libc::SIGKILL) => terminate::kill_tree(&record).await,
        (true, _) => terminate::signal_tree(&record, number).await > 0,
        (false, _) => terminate::signal_leader(&record, number),
    };
    if !reached {
        return Err(GuestError::new(
            ErrorCode::ProcessExited,
            "The process and all it started have ended.",
        ));
    }
    answer(record).await
}

pub async fn write_stdin(
    agent: &Arc<Agent>,
    request: Request<Incoming>,
    segment: &str,
) -> Outcome<AgentResponse> {
    let query = Query::parse(request.uri().query(), &["offset", "close", "stream"])?;
    let offset = query.number("offset")?;
    let writer = writer_of(request.headers())?;
    let close = query.flag("close")?.unwrap_or(false);
    let record = agent.table.find(segment)?;
    if query.flag("stream")?.unwrap_or(false) {
        return stream_stdin(record, request.into_body(), offset, writer, close);
    }
    let state = stdin::write_body(&record, request.into_body(), offset, writer.as_deref(), close).await?;
    Ok(json(
        StatusCode::OK,
        &StdinView {
            accepted: state.accepted,
            open: state.open,
        },
    ))
}

/// Whoever is refused here has written nothing.
fn stream_stdin(
    record: Arc<Record>,
    body: Incoming,
    offset: Option<u64>,
    writer: Option<String>,
    close: bool,
) -> Outcome<AgentResponse> {
    if close {
        return Err(GuestError::invalid(
            "close=1 does not go with stream=1; end the stream, then close.",
        ));
    }
    if !record.facts.tty {
        return Err(GuestError::new(
            ErrorCode::NotATerminal,
            "Only the input of a terminal stays open; give this process its input by requests with offsets.",
        ));
    }
    if record.look(|changing| changing.input.is_none()) {
        return Err(stdin::closed(&record));
    }
    let (sender, answer) = AgentBody::stream();
    tokio::spawn(stdin_stream::serve(record, body, offset, writer, sender));
    Ok(with_type(StatusCode::OK, NDJSON, answer))
}

/// A header, so that an agent from before it passes over it.
const WRITER: &str = "sandglass-writer";

fn writer_of(headers: &HeaderMap) -> Outcome<Option<String>> {
    let Some(value) = headers.get(WRITER) else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(name) if !name.is_empty() && name.len() <= KEY_MAX_BYTES => Ok(Some(name.to_owned())),
        _ => Err(GuestError::invalid(format!(
            "{WRITER} must be 1 to {KEY_MAX_BYTES} characters."
        ))),
    }
}

pub async fn resize(agent: &Arc<Agent>, request: Request<Incoming>, segment: &str) -> Outcome<AgentResponse> {
    Query::parse(request.uri().query(), &[])?;
    let size: TerminalSize = json_request::read(request.into_body()).await?;
    let size = size.check()?;
    let record = agent.table.find(segment)?;
    if !record.facts.tty {
        return Err(GuestError::new(
            ErrorCode::NotATerminal,
            "The process has no terminal; start it with tty.",
        ));
    }
    let Some(master) = record.look(|changing| changing.master.clone()) else {
        return Err(GuestError::new(
            ErrorCode::ProcessExited,
            "The process has ended; its terminal is gone with it.",
        ));
    };
    pty::resize(&*master, size)
        .map_err(|cause| GuestError::internal(format!("The terminal kept its size: {cause}.")))?;
    record.change(|changing| changing.size = Some(size));
    Ok(json(StatusCode::OK, &view(&record, Usage::default())))
}

pub async fn output(agent: &Arc<Agent>, request: Request<Incoming>, segment: &str) -> Outcome<AgentResponse> {
    let query = Query::parse(
        request.uri().query(),
        &["stream", "since", "since_stderr", "follow", "wait_exit"],
    )?;
    let record = agent.table.find(segment)?;
    let until = if query.flag("follow")?.unwrap_or(false) {
        Until::Exit
    } else {
        Until::Now
    };
    if query.flag("wait_exit")? == Some(false) {
        return Err(GuestError::invalid(
            "wait_exit can only be 1: a followed stream ends with the exit.",
        ));
    }
    let (since, since_stderr) = (query.number("since")?, query.number("since_stderr")?);
    let mut positions = match query.text("stream")?.unwrap_or("both") {
        "stdout" => PerStream {
            stdout: Some(since.unwrap_or(0)),
            stderr: None,
        },
        "stderr" => PerStream {
            stdout: None,
            stderr: Some(since_stderr.or(since).unwrap_or(0)),
        },
        "both" => PerStream {
            stdout: Some(since.unwrap_or(0)),
            stderr: Some(since_stderr.unwrap_or(0)),
        },
        _ => return Err(GuestError::invalid("stream must be stdout, stderr or both.")),
    };
    if record.facts.tty && positions.stdout.is_some() {
        positions.stderr = None;
    }
    check_positions(&record, &positions)?;
    let follower = record.attach(positions);
    let (sender, body) = AgentBody::stream();
    tokio::spawn(follow(follower, positions, until, sender));
    Ok(with_type(StatusCode::OK, FRAMES, body))
}

fn check_positions(record: &Record, positions: &PerStream<Option<u64>>) -> Outcome<()> {
    let beyond = record.look(|changing| {
        Stream::BOTH.iter().any(|stream| {
            positions
                .of(*stream)
                .is_some_and(|position| position > changing.output.of(*stream).ring.end())
        })
    });
    if beyond {
        Err(GuestError::invalid(
            "since is beyond what was written; ask from a byte that exists.",
        ))
    } else {
        Ok(())
    }
}

async fn answer(record: Arc<Record>) -> Outcome<AgentResponse> {
    let process = run_blocking(move || Ok(viewed(&record, &Snapshot::take()))).await?;
    Ok(json(StatusCode::OK, &process))
}

/// With what a running tree uses now.
fn viewed(record: &Arc<Record>, snapshot: &Snapshot) -> ProcessView {
    let running = record.look(|changing| changing.ended.is_none());
    let usage = if running {
        lineage::usage(&snapshot.members(&record.facts, true))
    } else {
        Usage::default()
    };
    view(record, usage)
}
