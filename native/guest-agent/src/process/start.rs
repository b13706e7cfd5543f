//! Starts a process once, whatever happens to the request that asked for it.
//!
//! The start runs in a task of its own: a client that goes away in the middle leaves a process that is listed, or
//! none, never half of one. With a key, a second request waits for the first and gets its process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use std::os::fd::{AsFd, OwnedFd};

use tokio::io::unix::AsyncFd;

use super::output;
use super::plan;
use super::reaper;
use super::record::{Channels, Facts, Follower, PerStream, Record, SharedFd, Stream};
use super::spawn::{self, Ends, Spawned};
use super::start_request::StartRequest;
use super::table::{Claim, Reservation};
use super::terminate;
use super::view;
use crate::agent::Agent;
use crate::blocking::run_blocking;
use crate::clock::now_ms;
use crate::errors::{GuestError, Outcome};
use crate::random;
use crate::sync::LockAnyway;

pub struct Started {
    pub record: Arc<Record>,
    /// At the first byte, there before the process could write any.
    pub follower: Follower,
    pub created: bool,
}

pub async fn start(agent: &Arc<Agent>, request: StartRequest) -> Outcome<Started> {
    loop {
        match agent.table.claim(request.key.as_deref(), request.fingerprint)? {
            Claim::Existing(record) => {
                let follower = record.attach(FROM_THE_START);
                return Ok(Started {
                    record,
                    follower,
                    created: false,
                });
            }
            Claim::Busy(mut done) => {
                // Ends when the other start does, one way or the other.
                let _ = done.changed().await;
            }
            Claim::Ours(reservation) => {
                let task = tokio::spawn(carry_out(Arc::clone(agent), request, reservation));
                return task.await.unwrap_or_else(|_| {
                    Err(GuestError::internal(
                        "The start failed inside the agent; try again.",
                    ))
                });
            }
        }
    }
}

const FROM_THE_START: PerStream<Option<u64>> = PerStream {
    stdout: Some(0),
    stderr: Some(0),
};

async fn carry_out(agent: Arc<Agent>, request: StartRequest, reservation: Reservation) -> Outcome<Started> {
    let id = random::process_id()
        .map_err(|cause| GuestError::internal(format!("No randomness for an id: {cause}.")))?;
    let identity = Arc::clone(&agent.identity.locked());
    let turn = agent.spawns.acquire().await;
    let groups = Arc::clone(&agent.groups);
    let births = Arc::clone(&agent.births);
    let (tty, facts, spawned) = run_blocking(move || {
        let plan = plan::resolve(&request, &identity, &id)?;
        let started_at_ms = now_ms();
        let started = Instant::now();
        let group = groups.create(&id);
        let spawned = spawn::spawn(&plan, group.as_ref().map(|group| group.door.as_fd()));
        births.announce();
        let spawned = match spawned {
            Ok(spawned) => spawned,
            Err(error) => {
                if let Some(group) = group {
                    groups.remove(group.directory);
                }
                return Err(error);
            }
        };
        let argv: Vec<Vec<u8>> = plan
            .argv
            .iter()
            .map(|argument| argument.as_bytes().to_vec())
            .collect();
        let facts = Facts {
            id,
            key: request.key.clone(),
            fingerprint: request.fingerprint,
            argv: view::shown_argv(&request, &argv),
            cwd: plan.cwd.to_string_lossy().into_owned(),
            user: plan.user.name.clone(),
            pid: spawned.pid,
            tty: request.tty.is_some(),
            group: group.map(|group| group.directory),
            kill_grace: Duration::from_millis(request.kill_grace_ms),
            timeout: request.timeout_ms.map(Duration::from_millis),
            started_at_ms,
            started,
        };
        Ok((request.tty, facts, spawned))
    })
    .await?;
    drop(turn);
    let pid = facts.pid;
    let channels = match channels(spawned) {
        Ok(channels) => channels,
        Err(cause) => {
            // SAFETY: a plain call on a child that nobody else knows yet.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
            }
            return Err(GuestError::internal(format!(
                "The process could not be watched: {cause}; try again."
            )));
        }
    };
    let outputs = PerStream {
        stdout: channels.stdout.clone(),
        stderr: channels.stderr.clone(),
    };
    let record = Arc::new(Record::new(facts, tty, channels));
    let follower = record.attach(FROM_THE_START);
    let ended = reservation.fulfil(&record);
    for stream in Stream::BOTH {
        if let Some(fd) = outputs.of(stream) {
            tokio::spawn(output::pump(Arc::clone(&record), stream, Arc::clone(fd)));
        }
    }
    match ended {
        Some(ended) => reaper::leader_ended(&agent.groups, &record, ended),
        None => watch_timeout(&record),
    }
    Ok(Started {
        record,
        follower,
        created: true,
    })
}

fn channels(spawned: Spawned) -> std::io::Result<Channels> {
    let shared = |fd: OwnedFd| -> std::io::Result<SharedFd> {
        {
            // SAFETY: an OwnedFd gives the same descriptor for as long as it lives.
            unsafe { AsyncFd::register(fd) }
                .map(Arc::new)
                .map_err(|error| error.into_parts().1)
        }
    };
    match spawned.ends {
        Ends::Pipes {
            stdin,
            stdout,
            stderr,
        } => Ok(Channels {
            stdin: stdin.map(shared).transpose()?,
            stdout: Some(shared(stdout)?),
            stderr: Some(shared(stderr)?),
            master: None,
        }),
        Ends::Terminal { master } => {
            let master = shared(master)?;
            Ok(Channels {
                stdin: Some(Arc::clone(&master)),
                stdout: Some(Arc::clone(&master)),
                stderr: None,
                master: Some(master),
            })
        }
    }
}

fn watch_timeout(record: &Arc<Record>) {
    let Some(timeout) = record.facts.timeout else {
        return;
    };
    let record = Arc::clone(record);
    tokio::spawn(async move {
        let over = record.wait_until(|changing| changing.ended.is_some());
        if tokio::time::timeout(timeout, over).await.is_err() {
            let late = record.change(|changing| {
                changing.timed_out = changing.ended.is_none();
                changing.tree_ending = changing.timed_out;
                changing.timed_out
            });
            if late {
                terminate::end_tree(&record, record.facts.kill_grace).await;
                record.change(|changing| changing.tree_ending = false);
            }
        }
    });
}
