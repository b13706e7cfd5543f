//! Collects every exit: leaders, and orphans that came to PID 1.
//!
//! A thread of its own blocks in `wait4`, the only place that waits for a child. There is no handler for SIGCHLD: a fork
//! bomb ends thousands of orphans a second, each would interrupt the thread that answers requests, and reaping there
//! would take their turns. Orphans are done with here; only leaders' exits, at most one for each process that was asked
//! for, go to the asynchronous side, over a channel that gives way to requests by itself.
//! Priorities would not help: gVisor keeps the niceness and OOM score of a task and acts on neither.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::group::Groups;
use super::output;
use super::record::{Cause, Ended, Record};
use super::retention;
use super::table::Table;
use crate::clock::now_ms;
use crate::limits::{CHILDLESS_LOOK_INTERVAL, THREAD_STACK_BYTES};
use crate::sync::LockAnyway;

/// A sweep looks at every exited process, so it is shared by several exits.
const EXITS_PER_SWEEP: u32 = 16;

/// Wakes the reaper, who cannot wait for children while there are none.
#[derive(Debug, Default)]
pub struct Births {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Births {
    /// Called after each clone, whatever became of it.
    pub fn announce(&self) {
        *self.count.locked() += 1;
        self.changed.notify_one();
    }

    fn count(&self) -> u64 {
        *self.count.locked()
    }

    /// Until there was one more than `seen`. The look now and then is for orphans of processes that the runtime put in.
    fn wait_beyond(&self, seen: u64) {
        let count = self.count.locked();
        drop(
            self.changed
                .wait_timeout_while(count, CHILDLESS_LOOK_INTERVAL, |count| *count == seen)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }
}

enum News {
    Leader(Arc<Record>, Ended),
    /// Somebody may have been the last in a group that waits for its end.
    Orphans,
}

/// Starts the thread; what it finds is acted on by [`run`].
pub fn start(table: Arc<Table>, groups: Arc<Groups>, births: Arc<Births>) -> io::Result<Reaped> {
    let (sender, news) = mpsc::unbounded_channel();
    let reaped = Reaped {
        news,
        table: Arc::clone(&table),
        groups: Arc::clone(&groups),
    };
    thread::Builder::new()
        .name("reaper".to_owned())
        .stack_size(THREAD_STACK_BYTES)
        .spawn(move || {
            loop {
                surviving(|| collect(&table, &groups, &births, &sender));
            }
        })?;
    Ok(reaped)
}

/// What the thread found, in order.
pub struct Reaped {
    news: UnboundedReceiver<News>,
    table: Arc<Table>,
    groups: Arc<Groups>,
}

/// Runs for ever.
pub async fn run(mut reaped: Reaped) {
    let mut unswept: u32 = 0;
    while let Some(news) = reaped.news.recv().await {
        unswept += u32::from(matches!(news, News::Leader(..)));
        let sweeps = unswept >= EXITS_PER_SWEEP;
        surviving(|| {
            act(news, &reaped.groups);
            if sweeps {
                retention::sweep(&reaped.table);
            }
        });
        if sweeps {
            unswept = 0;
        }
    }
}

fn act(news: News, groups: &Arc<Groups>) {
    match news {
        News::Leader(record, ended) => leader_ended(groups, &record, ended),
        News::Orphans => {
            let groups = Arc::clone(groups);
            tokio::task::spawn_blocking(move || groups.sweep());
        }
    }
}

/// PID 1 without a reaper is worse than none: a panic costs one exit.
fn surviving(step: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(step));
}

/// Waits for one exit.
fn collect(table: &Table, groups: &Groups, births: &Births, news: &UnboundedSender<News>) {
    let seen = births.count();
    match next_exit() {
        // The other side lives as long as this thread.
        Some((pid, ended)) => {
            if let Some(record) = table.exited(pid, ended) {
                let _ = news.send(News::Leader(record, ended));
            } else if groups.wants_sweep() {
                let _ = news.send(News::Orphans);
            }
        }
        None => births.wait_beyond(seen),
    }
}

/// Tells the record, and gives its control group back unless somebody still lives in it.
pub fn leader_ended(groups: &Arc<Groups>, record: &Arc<Record>, ended: Ended) {
    output::leader_ended(record, ended);
    if let Some(directory) = record.facts.group.clone() {
        let groups = Arc::clone(groups);
        tokio::task::spawn_blocking(move || groups.remove(directory));
    }
}

/// `None` when there is no child at all, or a signal came.
fn next_exit() -> Option<(libc::pid_t, Ended)> {
    let mut status = 0;
    // SAFETY: both pointers are to plain data that lives through the call.
    let (pid, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(-1, &raw mut status, 0, &raw mut usage), usage)
    };
    if pid <= 0 {
        return None;
    }
    let cause = if libc::WIFSIGNALED(status) {
        Cause::Signal(libc::WTERMSIG(status))
    } else {
        Cause::Code(libc::WEXITSTATUS(status))
    };
    let cpu_ms = whole_ms(usage.ru_utime) + whole_ms(usage.ru_stime);
    let memory_bytes = u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024;
    Some((
        pid,
        Ended {
            cause,
            at_ms: now_ms(),
            at: Instant::now(),
            cpu_ms,
            memory_bytes,
        },
    ))
}

fn whole_ms(time: libc::timeval) -> u64 {
    u64::try_from(time.tv_sec * 1000 + time.tv_usec / 1000).unwrap_or(0)
}
