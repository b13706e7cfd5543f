//! What the agent knows about one process, and who waits for what.
//!
//! One mutex holds the changing part; two `watch` channels say "something changed" (to followers and waiters) and
//! "there is room again" (to the pumps). A watch never loses a wake-up between a look and a wait, which a bare
//! notification can. Must stay true: offsets only grow; `ended` is set once, by the reaper; `settled` is set once,
//! after it; a follower's position never passes `end`.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

use super::ring::Ring;
use super::start_request::{Fingerprint, TerminalSize};
use crate::clock::whole_ms;
use crate::limits::OUTPUT_WINDOW_BYTES;
use crate::sync::LockAnyway;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    pub const BOTH: [Stream; 2] = [Stream::Stdout, Stream::Stderr];
}

/// One value for each output stream.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct PerStream<T> {
    pub stdout: T,
    pub stderr: T,
}

impl<T> PerStream<T> {
    pub fn of(&self, stream: Stream) -> &T {
        match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        }
    }

    pub fn of_mut(&mut self, stream: Stream) -> &mut T {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}

impl PerStream<u64> {
    /// The greater of each.
    #[must_use]
    pub fn later(self, other: Self) -> Self {
        Self {
            stdout: self.stdout.max(other.stdout),
            stderr: self.stderr.max(other.stderr),
        }
    }
}

pub type SharedFd = Arc<AsyncFd<OwnedFd>>;

/// What does not change after the start.
#[derive(Debug)]
pub struct Facts {
    pub id: String,
    pub key: Option<String>,
    pub fingerprint: Fingerprint,
    pub argv: Vec<String>,
    pub cwd: String,
    pub user: String,
    pub pid: libc::pid_t,
    pub tty: bool,
    /// The control group of its tree, where there are groups.
    pub group: Option<PathBuf>,
    pub kill_grace: Duration,
    pub timeout: Option<Duration>,
    pub started_at_ms: u64,
    pub started: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    Code(i32),
    Signal(i32),
}

/// The leader's end, as the kernel told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    pub cause: Cause,
    pub at_ms: u64,
    pub at: Instant,
    pub cpu_ms: u64,
    pub memory_bytes: u64,
}

#[derive(Debug)]
pub struct Output {
    pub ring: Ring,
    /// The agent's end; `None` once the last writer closed its own.
    pub fd: Option<SharedFd>,
    pub last_byte: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StdinState {
    pub accepted: u64,
    pub open: bool,
}

/// The last bytes of input that one writer gave, up to `accepted`.
#[derive(Debug, Default)]
pub struct Stretch {
    /// `None` for all who do not say who they are.
    pub writer: Option<String>,
    pub from: u64,
}

#[derive(Debug)]
pub struct Changing {
    pub ended: Option<Ended>,
    /// Where the streams were when the exit could be told.
    pub settled: Option<PerStream<u64>>,
    pub timed_out: bool,
    /// Its tree is being ended after a timeout: the exit is not told before nothing of it is left.
    pub tree_ending: bool,
    pub size: Option<TerminalSize>,
    pub stdin: StdinState,
    pub stretch: Stretch,
    /// The agent's end of stdin, while it is open.
    pub input: Option<SharedFd>,
    /// The terminal's master, for resizes.
    pub master: Option<SharedFd>,
    pub output: PerStream<Output>,
    followers: BTreeMap<u64, PerStream<Option<u64>>>,
    next_follower: u64,
}

#[derive(Debug)]
pub struct Record {
    pub facts: Facts,
    changing: Mutex<Changing>,
    changed: watch::Sender<()>,
    room: watch::Sender<()>,
    /// Held while one request writes to stdin, so that two never mix.
    pub stdin_turn: tokio::sync::Mutex<()>,
}

pub struct Channels {
    pub stdin: Option<SharedFd>,
    pub stdout: Option<SharedFd>,
    pub stderr: Option<SharedFd>,
    pub master: Option<SharedFd>,
}

impl Output {
    fn new(fd: Option<SharedFd>) -> Self {
        Self {
            ring: Ring::new(OUTPUT_WINDOW_BYTES),
            fd,
            last_byte: Instant::now(),
        }
    }
}

impl Changing {
    /// Bytes the pump may read now: all it likes without followers, else up to a full ring ahead of the slowest.
    pub fn room(&self, stream: Stream) -> usize {
        let end = self.output.of(stream).ring.end();
        let slowest = self
            .followers
            .values()
            .filter_map(|positions| *positions.of(stream))
            .min();
        match slowest {
            None => OUTPUT_WINDOW_BYTES,
            Some(position) => {
                let ahead = usize::try_from(end.saturating_sub(position)).unwrap_or(OUTPUT_WINDOW_BYTES);
                OUTPUT_WINDOW_BYTES.saturating_sub(ahead)
            }
        }
    }

    pub fn output_open(&self) -> bool {
        self.ended.is_some()
            && Stream::BOTH
                .iter()
                .any(|stream| self.output.of(*stream).fd.is_some())
    }

    pub fn all_output_closed(&self) -> bool {
        Stream::BOTH
            .iter()
            .all(|stream| self.output.of(*stream).fd.is_none())
    }

    /// Gives back what only a living process needs: a result that is kept for a while must not keep descriptors.
    pub fn release(&mut self) {
        if self.ended.is_some() && self.all_output_closed() {
            self.close_input();
            self.master = None;
        }
    }

    pub fn close_input(&mut self) {
        self.input = None;
        self.stdin.open = false;
    }

    /// Offset from which on this writer has given all input there is.
    pub fn given_from(&self, writer: Option<&str>) -> u64 {
        if self.stretch.writer.as_deref() == writer {
            self.stretch.from
        } else {
            self.stdin.accepted
        }
    }

    /// What is written next is this writer's.
    pub fn begin_stretch(&mut self, writer: Option<&str>) {
        if self.stretch.writer.as_deref() != writer {
            self.stretch = Stretch {
                writer: writer.map(str::to_owned),
                from: self.stdin.accepted,
            };
        }
    }

    pub fn ends(&self) -> PerStream<u64> {
        PerStream {
            stdout: self.output.stdout.ring.end(),
            stderr: self.output.stderr.ring.end(),
        }
    }

    pub fn held_bytes(&self) -> usize {
        self.output.stdout.ring.held() + self.output.stderr.ring.held()
    }
}

impl Record {
    pub fn new(facts: Facts, size: Option<TerminalSize>, channels: Channels) -> Self {
        let stdin = StdinState {
            accepted: 0,
            open: channels.stdin.is_some(),
        };
        let output = PerStream {
            stdout: Output::new(channels.stdout),
            stderr: Output::new(channels.stderr),
        };
        Self {
            facts,
            changing: Mutex::new(Changing {
                ended: None,
                settled: None,
                timed_out: false,
                tree_ending: false,
                size,
                stdin,
                stretch: Stretch::default(),
                input: channels.stdin,
                master: channels.master,
                output,
                followers: BTreeMap::new(),
                next_follower: 0,
            }),
            changed: watch::Sender::new(()),
            room: watch::Sender::new(()),
            stdin_turn: tokio::sync::Mutex::new(()),
        }
    }

    /// Looks without telling anybody.
    pub fn look<T>(&self, look: impl FnOnce(&Changing) -> T) -> T {
        look(&self.changing.locked())
    }

    /// Changes and tells everybody who waits.
    pub fn change<T>(&self, change: impl FnOnce(&mut Changing) -> T) -> T {
        let result = self.change_untold(change);
        self.tell();
        result
    }

    /// Changes what is soon to be told.
    pub fn change_untold<T>(&self, change: impl FnOnce(&mut Changing) -> T) -> T {
        change(&mut self.changing.locked())
    }

    /// Tells everybody who waits.
    pub fn tell(&self) {
        self.changed.send_replace(());
    }

    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    pub fn room_changes(&self) -> watch::Receiver<()> {
        self.room.subscribe()
    }

    /// Waits until `done` holds.
    pub async fn wait_until(&self, done: impl Fn(&Changing) -> bool) {
        let mut changes = self.changes();
        while !self.look(&done) {
            // The sender lives as long as this record.
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Registers a follower at the given positions; it holds back the pumps until it is dropped.
    pub fn attach(self: &Arc<Self>, positions: PerStream<Option<u64>>) -> Follower {
        let mut changing = self.changing.locked();
        let id = changing.next_follower;
        changing.next_follower += 1;
        changing.followers.insert(id, positions);
        Follower {
            record: Arc::clone(self),
            id,
        }
    }

    pub fn duration_ms(&self, ended: &Ended) -> u64 {
        whole_ms(ended.at.saturating_duration_since(self.facts.started))
    }
}

/// A reader's place in the output; leaves when dropped.
pub struct Follower {
    pub record: Arc<Record>,
    id: u64,
}

impl Follower {
    pub fn advance(&self, stream: Stream, position: u64) {
        {
            let mut changing = self.record.changing.locked();
            if let Some(positions) = changing.followers.get_mut(&self.id) {
                *positions.of_mut(stream) = Some(position);
            }
        }
        self.record.room.send_replace(());
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.record.changing.locked().followers.remove(&self.id);
        self.record.room.send_replace(());
    }
}
