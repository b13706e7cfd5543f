//! From ring to client: the frame stream of exec and output.

use std::sync::Arc;

use bytes::BytesMut;
use serde::Serialize;

use super::record::{Changing, Follower, PerStream, Record, Stream};
use super::view::{ProcessView, Usage, view};
use crate::frames::{self, CHANNEL_STDERR, CHANNEL_STDOUT, DATA_MAX_BYTES, HEADER_BYTES, OFFSET_BYTES};
use crate::http::body::{BodySender, ClientGone};
use crate::limits::{FOLLOW_BATCH_BYTES, HEARTBEAT_INTERVAL, SHORT_COMMAND_WAIT};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Status {
    Started {
        process: ProcessView,
    },
    Gap {
        stream: &'static str,
        from: u64,
        to: u64,
    },
    Heartbeat,
    Exit {
        process: ProcessView,
    },
    End,
}

/// When a stream is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The exit, with everything before it.
    Exit,
    /// What is there now.
    Now,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowEnd {
    Told,
    ClientGone,
}

/// Until everything of a short command is there, so that start, output and exit go out as one piece: each piece wakes
/// host, gateway and client. A command that is given input, or has a terminal, is told at once; somebody waits for it.
pub async fn await_short(record: &Record, sender: &BodySender) {
    let is_spoken_to = |changing: &Changing| record.facts.tty || changing.stdin.open;
    let over = record.wait_until(|changing| changing.settled.is_some() || is_spoken_to(changing));
    let mut over = std::pin::pin!(over);
    let mut gone = std::pin::pin!(sender.closed());
    let either = std::future::poll_fn(|cx| {
        use std::task::Poll;
        if gone.as_mut().poll(cx).is_ready() || over.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        Poll::Pending
    });
    // It is no short one.
    let _ = tokio::time::timeout(SHORT_COMMAND_WAIT, either).await;
}

/// Streams from `positions` on; a position of `None` leaves that stream out.
pub async fn follow(
    follower: Follower,
    mut positions: PerStream<Option<u64>>,
    until: Until,
    sender: BodySender,
) -> FollowEnd {
    let record = Arc::clone(&follower.record);
    let mut changes = record.changes();
    let mut batch = BytesMut::new();
    put(
        &mut batch,
        &Status::Started {
            process: view(&record, Usage::default()),
        },
    );
    // A descendant may write for ever after the exit, and anybody may while "now" is read: both have an end.
    let ends_now = record.look(Changing::ends);
    loop {
        changes.mark_unchanged();
        // Looked at before the bytes are: what is settled now has all its bytes in the ring.
        let settled = record.look(|changing| changing.settled);
        let stop = match (until, settled) {
            (Until::Now, _) => Some(ends_now),
            (Until::Exit, Some(ends)) => Some(ends.later(ends_now)),
            (Until::Exit, None) => None,
        };
        for stream in Stream::BOTH {
            if let Some(position) = positions.of_mut(stream) {
                take(
                    &record,
                    stream,
                    position,
                    stop.map(|ends| *ends.of(stream)),
                    &mut batch,
                );
                follower.advance(stream, *position);
            }
        }
        // With its last bytes where they fit, so that a short command is one piece.
        let is_taken = |ends: PerStream<u64>| {
            let reached = |stream: &Stream| {
                positions
                    .of(*stream)
                    .is_none_or(|position| position >= *ends.of(*stream))
            };
            Stream::BOTH.iter().all(reached)
        };
        let over = stop.is_some_and(is_taken);
        if over {
            let last = if settled.is_some() {
                Status::Exit {
                    process: view(&record, Usage::default()),
                }
            } else {
                Status::End
            };
            put(&mut batch, &last);
        }
        let result = if batch.is_empty() {
            wait(&sender, &mut changes, &mut batch).await
        } else {
            sender.send(batch.split().freeze()).await
        };
        match result {
            Err(ClientGone) => return FollowEnd::ClientGone,
            Ok(()) if over => {
                sender.finish().await;
                return FollowEnd::Told;
            }
            Ok(()) => {}
        }
    }
}

/// Waits for a change, or puts a heartbeat after a long silence.
async fn wait(
    sender: &BodySender,
    changes: &mut tokio::sync::watch::Receiver<()>,
    batch: &mut BytesMut,
) -> Result<(), ClientGone> {
    let mut change = std::pin::pin!(changes.changed());
    let mut gone = std::pin::pin!(sender.closed());
    let either = std::future::poll_fn(|cx| {
        use std::task::Poll;
        if gone.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(ClientGone));
        }
        change.as_mut().poll(cx).map(|_| Ok(()))
    });
    match tokio::time::timeout(HEARTBEAT_INTERVAL, either).await {
        Ok(result) => result,
        Err(_) => {
            put(batch, &Status::Heartbeat);
            Ok(())
        }
    }
}

/// Moves what the ring has after `position` into the batch, up to one batch.
fn take(record: &Record, stream: Stream, position: &mut u64, stop: Option<u64>, batch: &mut BytesMut) {
    let (channel, name) = match stream {
        Stream::Stdout => (CHANNEL_STDOUT, "stdout"),
        Stream::Stderr => (CHANNEL_STDERR, "stderr"),
    };
    record.look(|changing| {
        let ring = &changing.output.of(stream).ring;
        if *position < ring.start() {
            put(
                batch,
                &Status::Gap {
                    stream: name,
                    from: *position,
                    to: ring.start(),
                },
            );
            *position = ring.start();
        }
        let waiting = usize::try_from(ring.end().saturating_sub(*position)).unwrap_or(FOLLOW_BATCH_BYTES);
        if waiting > 0 {
            // At once: growing by and by would move what is there each time.
            let bytes = waiting.min(FOLLOW_BATCH_BYTES + DATA_MAX_BYTES);
            let frames = bytes.div_ceil(DATA_MAX_BYTES) + 1;
            batch.reserve(bytes + frames * (HEADER_BYTES + OFFSET_BYTES));
        }
        while batch.len() < FOLLOW_BATCH_BYTES {
            let run = ring.run_from(*position);
            let allowed = stop.map_or(run.len(), |stop| {
                usize::try_from(stop.saturating_sub(*position)).unwrap_or(run.len())
            });
            let run = run.get(..allowed.min(DATA_MAX_BYTES)).unwrap_or(run);
            if run.is_empty() {
                break;
            }
            let taken = frames::put_output(batch, channel, *position, run);
            *position += taken as u64;
        }
    });
}

/// All messages here are small by construction, see `view`.
fn put(batch: &mut BytesMut, status: &Status) {
    let fits = frames::put_status(batch, status);
    debug_assert!(fits, "a status message outgrew a frame");
}
