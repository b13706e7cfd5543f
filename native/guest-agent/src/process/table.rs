//! All processes the agent started: by id, by key, by pid.
//!
//! Exits and spawns race: a child may be reaped before its spawning thread said which pid it got. While a spawn is
//! in flight, exits of unknown pids are kept, and registration looks there first; afterwards unknown pids are
//! orphans of somebody's tree and are forgotten. That keeps spawns parallel without a lock around them, and no
//! exit code of a fast command is ever lost.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::watch;

use super::record::{Ended, Record};
use super::start_request::Fingerprint;
use crate::errors::{ErrorCode, GuestError, Outcome};
use crate::limits::{EARLY_EXIT_AGE_MAX, EARLY_EXITS_MAX, PROCESSES_RUNNING_MAX};
use crate::sync::LockAnyway;

#[derive(Default)]
struct Inner {
    by_id: HashMap<String, Arc<Record>>,
    by_key: HashMap<String, KeySlot>,
    running: HashMap<libc::pid_t, Arc<Record>>,
    spawning: usize,
    early: HashMap<libc::pid_t, Ended>,
    /// Exited ones in the order of their exit.
    exited: BTreeMap<u64, Arc<Record>>,
    exits: u64,
}

enum KeySlot {
    Starting(Fingerprint, watch::Receiver<()>),
    Started(Arc<Record>),
}

#[derive(Default)]
pub struct Table(Mutex<Inner>);

/// What a start with a key found.
pub enum Claim {
    /// Nobody else: start it, and report through the reservation.
    Ours(Reservation),
    Existing(Arc<Record>),
    /// Somebody is starting it right now; look again when this ends.
    Busy(watch::Receiver<()>),
}

/// A place in the table for a process that is being started; given back when dropped.
pub struct Reservation {
    table: Arc<Table>,
    key: Option<String>,
    /// Dropped with the reservation, which wakes those who wait for the key.
    _done: watch::Sender<()>,
}

impl Table {
    pub fn claim(self: &Arc<Self>, key: Option<&str>, fingerprint: Fingerprint) -> Outcome<Claim> {
        let mut inner = self.0.locked();
        if let Some(slot) = key.and_then(|key| inner.by_key.get(key)) {
            let (known, claim) = match slot {
                KeySlot::Starting(known, done) => (*known, Claim::Busy(done.clone())),
                KeySlot::Started(record) => (record.facts.fingerprint, Claim::Existing(Arc::clone(record))),
            };
            if known != fingerprint {
                return Err(GuestError::new(
                    ErrorCode::ProcessKeyConflict,
                    "The key belongs to a process started with another request; use a new key.",
                ));
            }
            return Ok(claim);
        }
        if inner.running.len() + inner.spawning >= PROCESSES_RUNNING_MAX {
            return Err(GuestError::new(
                ErrorCode::ProcessLimit,
                format!("{PROCESSES_RUNNING_MAX} processes are running; end some and try again."),
            ));
        }
        let (done, wait) = watch::channel(());
        if let Some(key) = key {
            inner
                .by_key
                .insert(key.to_owned(), KeySlot::Starting(fingerprint, wait));
        }
        inner.spawning += 1;
        Ok(Claim::Ours(Reservation {
            table: Arc::clone(self),
            key: key.map(str::to_owned),
            _done: done,
        }))
    }

    pub fn by_id(&self, id: &str) -> Option<Arc<Record>> {
        self.0.locked().by_id.get(id).cloned()
    }

    pub fn by_key(&self, key: &str) -> Option<Arc<Record>> {
        match self.0.locked().by_key.get(key) {
            Some(KeySlot::Started(record)) => Some(Arc::clone(record)),
            _ => None,
        }
    }

    /// By the path segment of a request: an id, or `key:` and a key.
    pub fn find(&self, segment: &str) -> Outcome<Arc<Record>> {
        let found = match segment.strip_prefix("key:") {
            Some(key) => self.by_key(key),
            None => self.by_id(segment),
        };
        found.ok_or_else(|| {
            GuestError::new(
                ErrorCode::ProcessNotFound,
                "No such process is running or remembered; list them to see which are.",
            )
        })
    }

    /// In the order they were started.
    pub fn all(&self) -> Vec<Arc<Record>> {
        let mut all: Vec<_> = self.0.locked().by_id.values().cloned().collect();
        all.sort_by(|a, b| (a.facts.started, &a.facts.id).cmp(&(b.facts.started, &b.facts.id)));
        all
    }

    pub fn running(&self) -> usize {
        self.0.locked().running.len()
    }

    /// The pid of each running leader, with its record.
    pub fn leaders(&self) -> HashMap<libc::pid_t, Arc<Record>> {
        self.0.locked().running.clone()
    }

    /// Called by the reaper; the record whose leader that was, if any.
    pub fn exited(&self, pid: libc::pid_t, ended: Ended) -> Option<Arc<Record>> {
        let mut inner = self.0.locked();
        if let Some(record) = inner.running.remove(&pid) {
            inner.remember_exit(&record);
            return Some(record);
        }
        if inner.spawning > 0 {
            inner.early.insert(pid, ended);
            inner.forget_old_exits(ended.at);
        }
        None
    }

    /// Exited records, oldest exit first.
    pub fn exited_records(&self) -> Vec<Arc<Record>> {
        self.0.locked().exited.values().cloned().collect()
    }

    pub fn forget(&self, id: &str) {
        let mut inner = self.0.locked();
        let Some(record) = inner.by_id.remove(id) else {
            return;
        };
        if let Some(key) = &record.facts.key {
            inner.by_key.remove(key);
        }
        inner.exited.retain(|_, exited| exited.facts.id != id);
    }
}

impl Inner {
    fn remember_exit(&mut self, record: &Arc<Record>) {
        self.exited.insert(self.exits, Arc::clone(record));
        self.exits += 1;
    }

    /// Where spawns never pause, exits of orphans must not gather.
    fn forget_old_exits(&mut self, now: Instant) {
        if self.early.len() > EARLY_EXITS_MAX {
            self.early
                .retain(|_, ended| now.saturating_duration_since(ended.at) < EARLY_EXIT_AGE_MAX);
        }
    }

    fn spawn_over(&mut self) {
        self.spawning = self.spawning.saturating_sub(1);
        if self.spawning == 0 {
            self.early.clear();
        }
    }
}

impl Reservation {
    /// Lists the started process; its end, when it is over already.
    pub fn fulfil(mut self, record: &Arc<Record>) -> Option<Ended> {
        let table = Arc::clone(&self.table);
        let mut inner = table.0.locked();
        inner.by_id.insert(record.facts.id.clone(), Arc::clone(record));
        if let Some(key) = self.key.take() {
            inner.by_key.insert(key, KeySlot::Started(Arc::clone(record)));
        }
        // An older exit with this pid was somebody else's.
        let early = inner
            .early
            .remove(&record.facts.pid)
            .filter(|ended| ended.at >= record.facts.started);
        if early.is_some() {
            inner.remember_exit(record);
        } else {
            inner.running.insert(record.facts.pid, Arc::clone(record));
        }
        drop(inner);
        early
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut inner = self.table.0.locked();
        if let Some(key) = self.key.take() {
            inner.by_key.remove(&key);
        }
        inner.spawn_over();
    }
}
