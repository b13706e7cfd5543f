//! Signals to a whole tree, and its end: SIGTERM, a grace, SIGKILL until nothing is left.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::group;
use super::lineage::Snapshot;
use super::record::Record;
use super::scan::ProcessLine;
use crate::limits::{KILL_POLL_MAX, KILL_POLL_MIN, KILL_SWEEP_MAX};

/// Live members of the record's tree, looked up on a thread that may block.
pub async fn members(record: &Arc<Record>) -> Vec<ProcessLine> {
    let record = Arc::clone(record);
    let look = move || {
        let leader_lives = record.look(|changing| changing.ended.is_none());
        Snapshot::take().members(&record.facts, leader_lives)
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

/// Sends one signal to each member; how many there were.
pub async fn signal_tree(record: &Arc<Record>, signal: i32) -> usize {
    let members = members(record).await;
    for member in &members {
        send(member.pid, signal);
    }
    members.len()
}

/// Sends one signal to the leader alone; `false` when it is gone.
pub fn signal_leader(record: &Record, signal: i32) -> bool {
    // The look holds the lock, so the reaper cannot give the pid away in between: it takes the record's lock only
    // after the wait, but a number is not used again before the whole range was.
    record.look(|changing| changing.ended.is_none() && send(record.facts.pid, signal))
}

/// Ends the tree. SIGKILL goes on until nothing is left, since a tree may fork while it is being killed.
pub async fn end_tree(record: &Arc<Record>, grace: Duration) {
    if signal_tree(record, libc::SIGTERM).await > 0 {
        wait_for_none(record, grace).await;
    }
    kill_tree(record).await;
}

/// SIGKILL until nothing is left; whether there was anything.
pub async fn kill_tree(record: &Arc<Record>) -> bool {
    let mut any = match &record.facts.group {
        Some(directory) => kill_group(directory).await,
        None => false,
    };
    let deadline = Instant::now() + KILL_SWEEP_MAX;
    let mut pause = KILL_POLL_MIN;
    while signal_tree(record, libc::SIGKILL).await > 0 {
        any = true;
        if Instant::now() > deadline {
            break;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(KILL_POLL_MAX);
    }
    any
}

/// Ends a tree that forks as fast as it can, in one step; a look at all of `/proc` takes longer than it needs to grow.
async fn kill_group(directory: &Path) -> bool {
    let deadline = Instant::now() + KILL_SWEEP_MAX;
    let any = group::is_populated(directory);
    // Here and not on another thread: in a sandbox that is full each turn may take seconds to come.
    group::kill(directory);
    while group::is_populated(directory) && Instant::now() < deadline {
        tokio::time::sleep(KILL_POLL_MIN).await;
    }
    any
}

async fn wait_for_none(record: &Arc<Record>, longest: Duration) {
    let deadline = Instant::now() + longest;
    let mut pause = KILL_POLL_MIN;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left == Duration::ZERO {
            return;
        }
        tokio::time::sleep(pause.min(left)).await;
        pause = (pause * 2).min(KILL_POLL_MAX);
        if members(record).await.is_empty() {
            return;
        }
    }
}

fn send(pid: i32, signal: i32) -> bool {
    // SAFETY: a plain call; pids come from /proc and are above 1.
    unsafe { libc::kill(pid, signal) == 0 }
}
