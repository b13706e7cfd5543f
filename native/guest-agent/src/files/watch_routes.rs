//! The endpoint of watches: NDJSON until the client or the watched path goes.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use tokio::io::unix::AsyncFd;
use tokio::sync::OwnedSemaphorePermit;

use super::as_user::{run_as, with_rights_of};
use super::routes::{path_of, user_of};
use super::watch::{WatchEvent, Watcher};
use crate::agent::Agent;
use crate::blocking::run_blocking;
use crate::errors::{ErrorCode, GuestError, Outcome};
use crate::http::body::{AgentBody, BodySender};
use crate::http::query::Query;
use crate::http::response::{AgentResponse, NDJSON, with_type};
use crate::limits::{HEARTBEAT_INTERVAL, IO_CHUNK_BYTES, WATCH_MOVE_WAIT, WATCHERS_MAX};
use crate::users::User;

pub async fn watch(agent: &Arc<Agent>, request: Request<Incoming>) -> Outcome<AgentResponse> {
    let query = Query::parse(request.uri().query(), &["path", "user", "recursive"])?;
    let path = path_of(&query)?;
    let recursive = query.flag("recursive")?.unwrap_or(false);
    let Ok(place) = Arc::clone(&agent.watchers).try_acquire_owned() else {
        return Err(GuestError::new(
            ErrorCode::LimitExceeded,
            format!("{WATCHERS_MAX} watches are open in this sandbox; close one first."),
        ));
    };
    let (user, watcher) = run_as(user_of(&query)?, move |user| {
        Ok((user.clone(), Watcher::open(path.as_path(), recursive)?))
    })
    .await?;
    let (sender, body) = AgentBody::stream();
    tokio::spawn(serve(user, watcher, sender, place));
    Ok(with_type(StatusCode::OK, NDJSON, body))
}

/// Holds its place until it ends.
async fn serve(user: User, watcher: Watcher, sender: BodySender, _place: OwnedSemaphorePermit) {
    match relay(user, watcher, &sender).await {
        Some(()) => sender.finish().await,
        None => sender.abort().await,
    }
}

/// `None` when the stream cannot go on.
async fn relay(mut user: User, mut watcher: Watcher, sender: &BodySender) -> Option<()> {
    let duplicate = watcher.fd().try_clone().ok()?;
    // SAFETY: an OwnedFd gives the same descriptor for as long as it lives.
    let fd = unsafe { AsyncFd::register(duplicate) }.ok()?;
    sender.send(lines(&[WatchEvent::Ready])).await.ok()?;
    loop {
        let patience = if watcher.is_waiting() {
            WATCH_MOVE_WAIT
        } else {
            HEARTBEAT_INTERVAL
        };
        let events = match wait(&fd, sender, patience).await? {
            Woken::Silence => vec![watcher.flush().unwrap_or(WatchEvent::Heartbeat)],
            Woken::Events(buffer) => {
                let step = run_blocking(move || {
                    let events = with_rights_of(&user, || watcher.take(&buffer))?;
                    Ok((user, watcher, events))
                });
                let (same_user, same_watcher, events) = step.await.ok()?;
                (user, watcher) = (same_user, same_watcher);
                events
            }
        };
        if !events.is_empty() {
            sender.send(lines(&events)).await.ok()?;
        }
        if watcher.ended {
            return Some(());
        }
    }
}

enum Woken {
    Events(Vec<u8>),
    Silence,
}

/// Waits for events, the client's end (`None`), or too long a silence.
async fn wait(fd: &AsyncFd<std::os::fd::OwnedFd>, sender: &BodySender, patience: Duration) -> Option<Woken> {
    let mut gone = std::pin::pin!(sender.closed());
    let mut reading = std::pin::pin!(read(fd));
    let either = std::future::poll_fn(|cx| {
        use std::task::Poll;
        if gone.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        reading.as_mut().poll(cx)
    });
    match tokio::time::timeout(patience, either).await {
        Ok(read) => read.map(Woken::Events),
        Err(_) => Some(Woken::Silence),
    }
}

async fn read(fd: &AsyncFd<std::os::fd::OwnedFd>) -> Option<Vec<u8>> {
    loop {
        let mut ready = fd.readable().await.ok()?;
        let mut buffer = vec![0; IO_CHUNK_BYTES];
        // SAFETY: pointer and length are those of a live buffer.
        let got = unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        match usize::try_from(got) {
            Ok(count) => {
                buffer.truncate(count);
                return Some(buffer);
            }
            Err(_) => match std::io::Error::last_os_error().raw_os_error() {
                Some(libc::EAGAIN) => ready.clear_ready(),
                Some(libc::EINTR) => {}
                _ => return None,
            },
        }
    }
}

fn lines(events: &[WatchEvent]) -> Bytes {
    let mut out = BytesMut::new();
    for event in events {
        // Strings and numbers always serialise.
        out.put_slice(&serde_json::to_vec(event).unwrap_or_default());
        out.put_u8(b'\n');
    }
    out.freeze()
}
