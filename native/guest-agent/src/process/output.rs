//! From pipe or terminal to ring, and the moment when an exit may be told.
//!
//! One pump per stream reads when there is room. Without followers there always is, so a detached program never
//! blocks; with followers the slowest one sets the pace, so nothing they wait for is dropped. After the leader's
//! exit the bytes it had written (`FIONREAD` at that moment) are taken in full, then the pumps get a short quiet
//! time; a descendant that keeps the pipe open, or keeps writing, delays the exit by at most [`DRAIN_MAX`].

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::record::{Changing, Ended, PerStream, Record, SharedFd, Stream};
use crate::limits::{
    DRAIN_MAX, DRAIN_QUIET, FLOOD_BYTES, FLOOD_PAUSE, FLOOD_PIECE_BYTES, FLOOD_WINDOW, OUTPUT_READ_BYTES,
    TERMINAL_TURN_BYTES,
};

thread_local! {
    /// All pumps run on one thread and read without waiting, so they share one buffer.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; OUTPUT_READ_BYTES]);
}

/// Why a gathering ended.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    /// As much as was asked for is here; there may be more.
    Full,
    /// Nothing is left for now.
    Drained,
    Closed,
}

/// Notices a program that writes a lot in small pieces.
///
/// Each piece would wake the agent, which inside gVisor costs more than the bytes; while a flood is on, the pipe or
/// terminal is left to fill for a moment between reads. A program that answers somebody typing never comes near it.
#[derive(Default)]
struct Flood {
    since: Option<Instant>,
    bytes: usize,
}

impl Flood {
    /// Whether there is one, with these bytes.
    fn is_on(&mut self, count: usize) -> bool {
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        if now.saturating_duration_since(since) > FLOOD_WINDOW {
            self.since = Some(now);
            // A flood is still one in the next window; a program that went quiet pays one moment at most.
            self.bytes = self.bytes.min(2 * FLOOD_BYTES) / 2;
        }
        self.bytes += count;
        self.bytes >= FLOOD_BYTES
    }
}

/// Runs until the last writer closed the stream.
pub async fn pump(record: Arc<Record>, stream: Stream, fd: SharedFd) {
    let mut room_changes = record.room_changes();
    let mut flood = Flood::default();
    let mut is_wide = record.facts.tty;
    // Bytes of which nobody is told yet.
    let mut piece = 0;
    loop {
        room_changes.mark_unchanged();
        let room = record.look(|changing| changing.room(stream));
        if room == 0 {
            // Whoever is to make room must know of what there is.
            tell(&record, &mut piece);
            if room_changes.changed().await.is_err() {
                break;
            }
            continue;
        }
        let Ok(mut ready) = fd.readable().await else { break };
        let (count, stop) = gather(&record, stream, fd.as_raw_fd(), room);
        piece += count;
        let is_flood = count > 0 && flood.is_on(count);
        // Of a flood, several turns are one piece: each wakes all the way to the client.
        let goes_on = is_flood && stop == Stop::Full && count < room && piece < OUTPUT_READ_BYTES;
        let told = if goes_on { 0 } else { tell(&record, &mut piece) };
        match stop {
            Stop::Closed => break,
            Stop::Drained => ready.clear_ready(),
            // Others get their turn.
            Stop::Full => tokio::task::yield_now().await,
        }
        if !is_flood || goes_on {
            continue;
        }
        if !is_wide {
            is_wide = true;
            super::spawn::widen(&*fd);
        }
        if told < FLOOD_PIECE_BYTES {
            tokio::time::sleep(FLOOD_PAUSE).await;
        }
    }
    record.change(|changing| {
        changing.output.of_mut(stream).fd = None;
        if changing.ended.is_some() && changing.all_output_closed() {
            settle(changing);
        }
        changing.release();
    });
}

/// Tells everybody of the piece; its bytes.
fn tell(record: &Record, piece: &mut usize) -> usize {
    if *piece > 0 {
        record.tell();
    }
    std::mem::take(piece)
}

/// Takes what is there, up to `room` and for one turn. Nobody is told.
fn gather(record: &Record, stream: Stream, fd: RawFd, room: usize) -> (usize, Stop) {
    SCRATCH.with_borrow_mut(|scratch| {
        let wanted = room.min(scratch.len());
        let (filled, stop) = read_turn(
            fd,
            scratch.get_mut(..wanted).unwrap_or_default(),
            record.facts.tty,
        );
        if filled > 0 {
            record.change_untold(|changing| {
                let output = changing.output.of_mut(stream);
                output.ring.push(scratch.get(..filled).unwrap_or_default());
                output.last_byte = Instant::now();
            });
        }
        (filled, stop)
    })
}

/// Reads until the space is full, nothing is left, or the turn is over.
fn read_turn(fd: RawFd, space: &mut [u8], is_terminal: bool) -> (usize, Stop) {
    let most = if is_terminal {
        TERMINAL_TURN_BYTES
    } else {
        space.len()
    };
    let wanted = space.len().min(most);
    let mut filled = 0;
    loop {
        let Some(space) = space.get_mut(filled..wanted).filter(|space| !space.is_empty()) else {
            return (filled, Stop::Full);
        };
        // SAFETY: pointer and length are those of a live slice; the descriptor is open while its pump runs.
        let got = unsafe { libc::read(fd, space.as_mut_ptr().cast(), space.len()) };
        match usize::try_from(got) {
            Ok(0) => return (filled, Stop::Closed),
            Ok(count) => {
                // A pipe that gave less than it was asked for is empty. A terminal may hold more, and whether it was
                // closed only another call says.
                let drained = count < space.len() && !is_terminal;
                filled += count;
                if drained {
                    return (filled, Stop::Drained);
                }
            }
            Err(_) => match io::Error::last_os_error().raw_os_error() {
                Some(libc::EAGAIN) => return (filled, Stop::Drained),
                Some(libc::EINTR) => {}
                // A terminal whose last user is gone answers EIO.
                _ => return (filled, Stop::Closed),
            },
        }
    }
}

/// Takes note of the leader's exit, and sees to it that it is told.
pub fn leader_ended(record: &Arc<Record>, ended: Ended) {
    let targets = record.change(|changing| {
        changing.ended = Some(ended);
        if changing.all_output_closed() {
            settle(changing);
        }
        changing.release();
        let target = |stream: Stream| {
            let output = changing.output.of(stream);
            output.ring.end() + output.fd.as_ref().map_or(0, |fd| waiting_bytes(fd.as_raw_fd()))
        };
        PerStream {
            stdout: target(Stream::Stdout),
            stderr: target(Stream::Stderr),
        }
    });
    if record.look(|changing| changing.settled.is_none()) {
        tokio::spawn(drain(Arc::clone(record), targets));
    }
}

async fn drain(record: Arc<Record>, targets: PerStream<u64>) {
    let mut changes = record.changes();
    let mut complete_since: Option<Instant> = None;
    loop {
        changes.mark_unchanged();
        let now = Instant::now();
        let (settled, complete, last_byte) = record.look(|changing| {
            let open = |stream: &Stream| changing.output.of(*stream).fd.is_some();
            let complete = Stream::BOTH
                .iter()
                .filter(|stream| open(stream))
                .all(|stream| changing.output.of(*stream).ring.end() >= *targets.of(*stream));
            let last_byte = Stream::BOTH
                .iter()
                .map(|stream| changing.output.of(*stream).last_byte)
                .max();
            (
                changing.settled.is_some(),
                complete && !changing.tree_ending,
                last_byte,
            )
        });
        if settled {
            return;
        }
        if !complete {
            // A slow follower holds the bytes back and only its progress brings them in, or the tree still ends.
            if changes.changed().await.is_err() {
                return;
            }
            continue;
        }
        let complete_since = *complete_since.get_or_insert(now);
        let quiet_since = last_byte.map_or(complete_since, |last| last.max(complete_since));
        let until = (quiet_since + DRAIN_QUIET).min(complete_since + DRAIN_MAX);
        let left = until.saturating_duration_since(now);
        if left == Duration::ZERO {
            record.change(settle);
            return;
        }
        // Either outcome means: look again.
        let _ = tokio::time::timeout(left, changes.changed()).await;
    }
}

fn settle(changing: &mut Changing) {
    if changing.settled.is_some() || changing.tree_ending {
        return;
    }
    changing.settled = Some(changing.ends());
    for stream in Stream::BOTH {
        changing.output.of_mut(stream).ring.shrink();
    }
}

fn waiting_bytes(fd: RawFd) -> u64 {
    let mut count: libc::c_int = 0;
    // SAFETY: the request takes a pointer to an int.
    let result = unsafe { libc::ioctl(fd, libc::FIONREAD, &raw mut count) };
    if result < 0 {
        0
    } else {
        u64::try_from(count).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, Write};
    use std::os::fd::AsRawFd;

    use super::{Stop, read_turn};
    use crate::limits::{FLOOD_PIECE_BYTES, OUTPUT_READ_BYTES, TERMINAL_TURN_BYTES};

    /// What a pipe holds, and nobody who would write more.
    const HELD: usize = 64 << 10;

    fn filled() -> PipeReader {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&vec![7; HELD]).unwrap();
        reader
    }

    #[test]
    fn a_turn_of_a_terminal_is_short_however_much_there_is() {
        let reader = filled();
        let mut space = vec![0; OUTPUT_READ_BYTES];
        let mut turns = Vec::new();
        while turns.last().is_none_or(|(_, stop)| *stop == Stop::Full) {
            turns.push(read_turn(reader.as_raw_fd(), &mut space, true));
        }
        let full = || (TERMINAL_TURN_BYTES, Stop::Full);
        assert_eq!(turns, [full(), full(), (0, Stop::Closed)]);
        // A turn that is full is no small piece of a flood: the pump would sleep behind each.
        const { assert!(TERMINAL_TURN_BYTES >= FLOOD_PIECE_BYTES) };
    }

    #[test]
    fn a_turn_of_a_pipe_takes_all_there_is() {
        let reader = filled();
        let mut space = vec![0; OUTPUT_READ_BYTES];
        assert_eq!(
            read_turn(reader.as_raw_fd(), &mut space, false),
            (HELD, Stop::Drained)
        );
        assert_eq!(
            read_turn(filled().as_raw_fd(), &mut space[..100], false),
            (100, Stop::Full)
        );
    }
}
