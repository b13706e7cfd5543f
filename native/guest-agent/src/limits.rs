//! Every bound of the agent, in one place, units last in the name.
//!
//! Whatever a client, the host or a program inside the sandbox may grow is held by one of these.

use std::time::Duration;

/// Longest preamble line in either direction, newline included.
pub const PREAMBLE_MAX_BYTES: usize = 1024;
/// How long the host may take to answer the preamble.
pub const PREAMBLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause before the first dial after a session.
pub const REDIAL_DELAY: Duration = Duration::from_millis(50);
/// Longest pause between two dials.
pub const REDIAL_DELAY_MAX: Duration = Duration::from_secs(1);
/// Pause after the host refused the preamble.
pub const REFUSED_DELAY: Duration = Duration::from_secs(1);

/// HTTP/2: credit a peer starts with on one stream.
pub const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// HTTP/2: credit a peer starts with on the whole channel.
pub const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// HTTP/2: requests in flight on the channel.
pub const CONCURRENT_STREAMS_MAX: u32 = 1024;
/// HTTP/2: decoded header list of one request.
pub const HEADER_LIST_MAX_BYTES: u32 = 32 << 10;
/// HTTP/2: payload of one frame.
pub const HTTP_FRAME_MAX_BYTES: u32 = 64 << 10;
/// HTTP/2: bytes of one response that may wait in the agent for the socket.
pub const SEND_BUFFER_MAX_BYTES: usize = 256 << 10;
/// Buffers between HTTP/2 and the socket, one each way.
pub const SOCKET_BUFFER_BYTES: usize = 256 << 10;

/// A JSON request body.
pub const JSON_BODY_MAX_BYTES: usize = 1 << 20;
/// A raw query string.
pub const QUERY_MAX_BYTES: usize = 16 << 10;

/// Payload of one frame of a `vnd.sandglass.frames` stream, offset included.
pub const FRAME_PAYLOAD_MAX_BYTES: usize = 64 << 10;
/// Silence after which a stream carries a heartbeat.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);

/// Bytes of one output stream that can be replayed.
pub const OUTPUT_WINDOW_BYTES: usize = 1 << 20;
/// One read from a pipe or terminal, and what a pipe is asked to hold: fewer, larger steps for a flood.
pub const OUTPUT_READ_BYTES: usize = 256 << 10;
/// So many bytes in so short a time, in pieces smaller than that, are a flood; then they are left to gather for a
/// moment between reads.
pub const FLOOD_BYTES: usize = 128 << 10;
pub const FLOOD_PIECE_BYTES: usize = 32 << 10;
/// Most that is read from a terminal before others get their turn. It gives 4 KiB a call, which takes long inside
/// gVisor, and the key that would interrupt a flood waits for the turn to end. Less than a piece of a flood would pause.
pub const TERMINAL_TURN_BYTES: usize = FLOOD_PIECE_BYTES;
pub const FLOOD_WINDOW: Duration = Duration::from_millis(10);
pub const FLOOD_PAUSE: Duration = Duration::from_millis(1);
/// How long the answer to a start waits for the end of a short command, so that all of it is told in one piece.
pub const SHORT_COMMAND_WAIT: Duration = Duration::from_millis(5);
/// One step of a streamed listing or watch.
pub const IO_CHUNK_BYTES: usize = 64 << 10;
/// Quiet after the leader's exit that ends the wait for more output.
pub const DRAIN_QUIET: Duration = Duration::from_millis(100);
/// Longest wait for a descendant that keeps writing once the leader's own bytes are in.
pub const DRAIN_MAX: Duration = Duration::from_millis(500);

/// Processes running at once.
pub const PROCESSES_RUNNING_MAX: usize = 4096;
/// Exited processes whose result is kept.
pub const RESULTS_MAX: usize = 1000;
/// How long the output of an exited process is kept.
pub const OUTPUT_RETENTION: Duration = Duration::from_mins(10);
/// Output kept for all exited processes together.
pub const OUTPUT_RETENTION_MAX_BYTES: usize = 64 << 20;
/// Pause between two looks for what may be forgotten. Each costs an idle sandbox a millisecond; what is much is swept as it comes.
pub const HOUSEKEEPING_INTERVAL: Duration = Duration::from_mins(1);
/// Pause between two looks for orphans while there is no child.
pub const CHILDLESS_LOOK_INTERVAL: Duration = Duration::from_mins(1);
/// Exits of unknown pids that are kept while spawns are in flight, before the old ones go.
pub const EARLY_EXITS_MAX: usize = 4096;
pub const EARLY_EXIT_AGE_MAX: Duration = Duration::from_mins(1);
/// Spawns that may run at the same moment; more only queue behind the kernel's own locks.
pub const SPAWNS_IN_FLIGHT_MAX: usize = 4;

/// A terminal's input that stays open tells how far it is at least once in so many bytes.
pub const STDIN_RECEIPT_BYTES: u64 = 16 << 10;

/// Argument strings, environment strings.
pub const ARGV_MAX: usize = 4096;
pub const ENV_MAX: usize = 4096;
/// Process keys.
pub const KEY_MAX_BYTES: usize = 128;
/// Longest time a process may be given, 7 days.
pub const TIMEOUT_MAX_MS: u64 = 7 * 24 * 3600 * 1000;
/// Time between SIGTERM and SIGKILL.
pub const KILL_GRACE_DEFAULT_MS: u64 = 2000;
pub const KILL_GRACE_MAX_MS: u64 = 60_000;
/// How long SIGKILL is repeated over a tree that keeps growing.
pub const KILL_SWEEP_MAX: Duration = Duration::from_secs(10);
/// Pause between two looks at a tree that was told to end.
pub const KILL_POLL_MIN: Duration = Duration::from_millis(5);
pub const KILL_POLL_MAX: Duration = Duration::from_millis(100);
/// Terminal columns and rows.
pub const TERMINAL_SIDE_MAX: u16 = 1000;

/// One step of a streamed file.
pub const FILE_CHUNK_BYTES: usize = 256 << 10;
/// Bytes of an upload that are written at once; as many again may be gathered meanwhile.
pub const UPLOAD_PIECE_BYTES: usize = 512 << 10;
/// A path in bytes, and one name in it.
pub const PATH_MAX_BYTES: usize = 4096;
pub const NAME_MAX_BYTES: usize = 255;
/// Entries on one page of a listing.
pub const LIST_PAGE_MAX: usize = 1000;
/// Files without a size (`/proc`): most that is read, and for how long.
pub const SIZELESS_FILE_MAX_BYTES: usize = 16 << 20;
pub const SIZELESS_FILE_TIMEOUT: Duration = Duration::from_secs(5);
/// Depth of directories a tree operation follows.
pub const TREE_DEPTH_MAX: usize = 512;

/// Archives.
pub const ARCHIVE_ENTRIES_MAX: u64 = 1_000_000;
pub const ARCHIVE_TOTAL_MAX_BYTES: u64 = 64 << 30;
/// Files with several names that a packer remembers; later ones are packed in full.
pub const ARCHIVE_LINKS_REMEMBERED_MAX: usize = 100_000;
/// Directories whose own mode can only be set at the end of unpacking.
pub const ARCHIVE_CLOSED_DIRECTORIES_MAX: usize = 10_000;
pub const ARCHIVE_EXTENDED_HEADER_MAX_BYTES: u64 = 1 << 20;

/// File watches.
pub const WATCHERS_MAX: usize = 64;
pub const WATCH_DIRECTORIES_MAX: usize = 8192;
/// How long the first half of a move waits for its second.
pub const WATCH_MOVE_WAIT: Duration = Duration::from_millis(50);

/// Threads for work that blocks. They are started at boot and never end, so a fork bomb inside the
/// sandbox cannot leave the agent without one.
pub const BLOCKING_THREADS_MAX: usize = 24;
pub const BLOCKING_THREADS_AT_BOOT: usize = 4;
pub const THREAD_STACK_BYTES: usize = 256 << 10;
/// Long walks (recursive copy, remove, archive) at the same moment.
pub const LONG_WORK_MAX: usize = 8;
/// Bytes of frames handed to HTTP/2 at once.
pub const FOLLOW_BATCH_BYTES: usize = 256 << 10;
