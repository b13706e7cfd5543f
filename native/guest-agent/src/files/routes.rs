//! Endpoints of files.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, RANGE};
use hyper::{Method, Request, StatusCode};
use serde::Deserialize;

use super::as_user::run_as;
use super::chmod::{self, Change};
use super::copy::copy;
use super::etag;
use super::info::FileInfo;
use super::list::{self, Lines, PageRequest};
use super::long_work::run_long;
use super::mkdir;
use super::moves::move_to;
use super::path::GuestPath;
use super::preconditions::Preconditions;
use super::range::{self, Span};
use super::read;
use super::remove::remove;
use super::stat::stat;
use super::write::{self, Upload, WriteOptions};
use crate::agent::Agent;
use crate::errors::{GuestError, Outcome};
use crate::http::body::AgentBody;
use crate::http::json_request;
use crate::http::query::Query;
use crate::http::response::{AgentResponse, NDJSON, OCTETS, json, no_content, set_header, with_type};

const LAST_MODIFIED_MS: HeaderName = HeaderName::from_static("last-modified-ms");

pub fn path_of(query: &Query) -> Outcome<GuestPath> {
    GuestPath::new(query.bytes("path").unwrap_or_default())
}

pub fn user_of(query: &Query) -> Outcome<Option<String>> {
    Ok(query.text("user")?.map(str::to_owned))
}

/// `GET` and `HEAD`.
pub async fn read(request: Request<Incoming>) -> Outcome<AgentResponse> {
    let query = Query::parse(request.uri().query(), &["path", "user"])?;
    let path = path_of(&query)?;
    let preconditions = Preconditions::from_headers(request.headers())?;
    let readable = run_as(user_of(&query)?, move |_| read::open(path.as_path())).await?;
    let tag = etag::of(&readable.status);
    let modified_ms =
        readable.status.st_mtime.saturating_mul(1000) + readable.status.st_mtime_nsec / 1_000_000;
    let size = readable.size();
    let (status, span) = if preconditions.is_known(&readable.status)? {
        (StatusCode::NOT_MODIFIED, None)
    } else {
        match range::parse(
            request.headers().get(RANGE).and_then(|value| value.to_str().ok()),
            size,
        )? {
            Some(span) => (StatusCode::PARTIAL_CONTENT, Some(span)),
            None => (
                StatusCode::OK,
                Some(Span {
                    from: 0,
                    length: size,
                }),
            ),
        }
    };
    let body = match span {
        Some(span) if request.method() == Method::GET && span.length > 0 => {
            let (sender, body) = AgentBody::stream();
            tokio::spawn(read::stream(readable, span.from, span.length, sender));
            body
        }
        _ => AgentBody::empty(),
    };
    let mut response = with_type(status, OCTETS, body);
    set_header(&mut response, ETAG, &tag);
    set_header(&mut response, LAST_MODIFIED_MS, &modified_ms.to_string());
    if let Some(span) = span {
        set_header(&mut response, CONTENT_LENGTH, &span.length.to_string());
        if status == StatusCode::PARTIAL_CONTENT {
            let last = span.from + span.length - 1;
            set_header(
                &mut response,
                CONTENT_RANGE,
                &format!("bytes {}-{last}/{size}", span.from),
            );
        }
    }
    Ok(response)
}

pub async fn write(request: Request<Incoming>) -> Outcome<AgentResponse> {
    let query = Query::parse(request.uri().query(), &["path", "user", "mode", "parents"])?;
    let path = path_of(&query)?;
    let user = user_of(&query)?;
    let options = WriteOptions {
        mode: query.text("mode")?.map(octal).transpose()?,
        parents: query.flag("parents")?.unwrap_or(false),
        preconditions: Preconditions::from_headers(request.headers())?,
    };
    let announced = content_length(request.headers())?;
    let upload = Arc::new(run_as(user.clone(), move |_| Upload::begin(&path, options)).await?);
    write::fill(&upload, request.into_body(), announced).await?;
    let written = run_as(user, move |_| upload.place()).await?;
    let status = if written.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let mut response = json(status, &written);
    set_header(&mut response, ETAG, &written.etag);
    Ok(response)
}

pub async fn delete(agent: &Arc<Agent>, request: Request<Incoming>) -> Outcome<AgentResponse> {
    let query = Query::parse(request.uri().query(), &["path", "user", "recursive"])?;
    let path = path_of(&query)?;
    let recursive = query.flag("recursive")?.unwrap_or(false);
    run_long(agent, user_of(&query)?, move |_, given_up| {
        remove(&path, recursive, given_up)
    })
    .await?;
    Ok(no_content())
}

pub async fn describe(request: Request<Incoming>) -> Outcome<AgentResponse> {
    let query = Query::parse(request.uri().query(), &["path", "user", "follow"])?;
    let path = path_of(&query)?;
    let follow = query.flag("follow")?.unwrap_or(false);
    let info = run_as(user_of(&query)?, move |_| stat(path.as_path(), follow)).await?;
    Ok(json(StatusCode::OK, &info))
}

pub async fn list(agent: &Arc<Agent>, request: Request<Incoming>) -> Outcome<AgentResponse> {
    let query = Query::parse(request.uri().query(), &["path", "user", "cursor", "limit"])?;
    let path = path_of(&query)?;
    let user = user_of(&query)?;
    if request
        .headers()
        .get(ACCEPT)
        .is_some_and(|accept| accept == NDJSON)
    {
        if query.bytes("cursor").is_some() || query.bytes("limit").is_some() {
            return Err(GuestError::invalid(
                "A streamed listing has no pages; leave cursor and limit out.",
            ));
        }
        return stream_list(path, user).await;
    }
    let page = PageRequest::parse(query.bytes("cursor"), query.number("limit")?)?;
    let page = run_long(agent, user, move |_, _| list::page(path.as_path(), &page)).await?;
    Ok(json(StatusCode::OK, &page))
}

async fn stream_list(path: GuestPath, user: Option<String>) -> Outcome<AgentResponse> {
    let mut lines = run_as(user.clone(), move |_| Lines::open(path.as_path())).await?;
    let (sender, body) = AgentBody::stream();
    tokio::spawn(async move {
        loop {
            let step = run_as(user.clone(), move |_| {
                let chunk = lines.next_chunk()?;
                Ok((lines, chunk))
            });
            match step.await {
                Ok((_, chunk)) if chunk.is_empty() => return sender.finish().await,
                Ok((rest, chunk)) => {
                    lines = rest;
                    if sender.send(chunk).await.is_err() {
                        return;
                    }
                }
                Err(_) => return sender.abort().await,
            }
        }
    });
    Ok(with_type(StatusCode::OK, NDJSON, body))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MkdirBody {
    path: Option<String>,
    path_b64: Option<String>,
    mode: Option<String>,
    #[serde(default)]
    parents: bool,
    user: Option<String>,
}

pub async fn make_directory(request: Request<Incoming>) -> Outcome<AgentResponse> {
    Query::parse(request.uri().query(), &[])?;
    let body: MkdirBody = json_request::read(request.into_body()).await?;
    let path = GuestPath::from_fields(body.path.as_deref(), body.path_b64.as_deref(), "path")?;
    let mode = body.mode.as_deref().map(octal).transpose()?;
    let (created, info) = run_as(body.user, move |_| {
        let created = mkdir::make(&path, mode, body.parents)?;
        Ok((created, stat(path.as_path(), true)?))
    })
    .await?;
    Ok(json(
        if created {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        },
        &info,
    ))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TransferBody {
    from: Option<String>,
    from_b64: Option<String>,
    to: Option<String>,
    to_b64: Option<String>,
    #[serde(default = "yes")]
    overwrite: bool,
    user: Option<String>,
}

fn yes() -> bool {
    true
}

#[derive(Clone, Copy)]
pub enum Transfer {
    Move,
    Copy,
}

pub async fn transfer(
    agent: &Arc<Agent>,
    request: Request<Incoming>,
    transfer: Transfer,
) -> Outcome<AgentResponse> {
    Query::parse(request.uri().query(), &[])?;
    let body: TransferBody = json_request::read(request.into_body()).await?;
    let from = GuestPath::from_fields(body.from.as_deref(), body.from_b64.as_deref(), "from")?;
    let to = GuestPath::from_fields(body.to.as_deref(), body.to_b64.as_deref(), "to")?;
    let info: FileInfo = run_long(agent, body.user, move |_, given_up| {
        match transfer {
            Transfer::Move => move_to(&from, &to, body.overwrite, given_up)?,
            Transfer::Copy => copy(&from, &to, body.overwrite, given_up)?,
        }
        stat(to.as_path(), false)
    })
    .await?;
    Ok(json(StatusCode::OK, &info))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChmodBody {
    path: Option<String>,
    path_b64: Option<String>,
    mode: Option<String>,
    uid: Option<u32>,
    gid: Option<u32>,
    #[serde(default)]
    recursive: bool,
    user: Option<String>,
}

pub async fn change_mode(agent: &Arc<Agent>, request: Request<Incoming>) -> Outcome<AgentResponse> {
    Query::parse(request.uri().query(), &[])?;
    let body: ChmodBody = json_request::read(request.into_body()).await?;
    let path = GuestPath::from_fields(body.path.as_deref(), body.path_b64.as_deref(), "path")?;
    let change = Change {
        mode: body.mode.as_deref().map(octal).transpose()?,
        uid: body.uid,
        gid: body.gid,
    };
    if change.mode.is_none() && change.uid.is_none() && change.gid.is_none() {
        return Err(GuestError::invalid("Give at least one of mode, uid and gid."));
    }
    if [change.uid, change.gid].contains(&Some(u32::MAX)) {
        return Err(GuestError::invalid("uid and gid must be ids."));
    }
    let info = run_long(agent, body.user, move |_, given_up| {
        chmod::chmod(&path, change, body.recursive, given_up)?;
        stat(path.as_path(), true)
    })
    .await?;
    Ok(json(StatusCode::OK, &info))
}

fn octal(text: &str) -> Outcome<libc::mode_t> {
    let digits = (3..=4).contains(&text.len()) && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    match libc::mode_t::from_str_radix(text, 8) {
        Ok(mode) if digits => Ok(mode),
        _ => Err(GuestError::invalid(
            "mode must be three or four octal digits, such as 0644.",
        )),
    }
}

pub fn content_length(headers: &HeaderMap) -> Outcome<Option<u64>> {
    let Some(value) = headers.get(CONTENT_LENGTH) else {
        return Ok(None);
    };
    match value.to_str().ok().and_then(|text| text.parse().ok()) {
        Some(length) => Ok(Some(length)),
        None => Err(GuestError::invalid("content-length must be a number.")),
    }
}
