//! What the agent does before it serves: descriptors, signals, memory, threads.

use std::io;
use std::os::fd::IntoRawFd;
use std::sync::{Arc, Barrier, OnceLock};

use tokio::runtime::{Builder, Runtime};

use crate::limits::{BLOCKING_THREADS_AT_BOOT, BLOCKING_THREADS_MAX, THREAD_STACK_BYTES};
use crate::process::child::AGENT_SIGNALS;
use crate::process::spawn::null_file;

/// A year: threads for blocking work never end.
const THREAD_KEEP_ALIVE: std::time::Duration = std::time::Duration::from_hours(365 * 24);
/// Above a piece of a file, so that streaming reuses memory; below a full ring, so that rings are given back.
const MMAP_THRESHOLD_BYTES: libc::c_int = 768 << 10;
/// Freed memory that is kept: what a stream has in flight. Inside gVisor a fresh page costs more than the bytes in it.
const TRIM_THRESHOLD_BYTES: libc::c_int = 3 << 20;
const FIRST_DESCRIPTOR: libc::c_uint = 3;

/// The limit of open files the agent was started with.
pub static INHERITED_OPEN_FILES: OnceLock<libc::rlimit64> = OnceLock::new();

pub fn prepare() -> io::Result<()> {
    keep_standard_descriptors()?;
    raise_open_files();
    settle_memory();
    ignore_signals();
    // SAFETY: plain calls. Orphans come here also when this is not PID 1, as in tests.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        // Files get exactly the mode they are made with; processes get the usual mask, see `child`.
        libc::umask(0);
        // Nothing inherited may leak into processes; kernels without the call were given nothing by the runtime.
        libc::syscall(
            libc::SYS_close_range,
            FIRST_DESCRIPTOR,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        );
    }
    Ok(())
}

/// The runtime: one thread for everything that waits, a few for what blocks.
pub fn runtime() -> io::Result<Runtime> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .thread_keep_alive(THREAD_KEEP_ALIVE)
        .thread_stack_size(THREAD_STACK_BYTES)
        .thread_name("blocking")
        .build()?;
    // All of them at once wait for each other, so that each is a thread of its own.
    let together = Arc::new(Barrier::new(BLOCKING_THREADS_AT_BOOT));
    for _ in 0..BLOCKING_THREADS_AT_BOOT {
        let together = Arc::clone(&together);
        runtime.spawn_blocking(move || together.wait());
    }
    Ok(runtime)
}

/// Descriptors 0, 1 and 2 exist, so nothing else is ever opened in their place.
fn keep_standard_descriptors() -> io::Result<()> {
    loop {
        let fd = null_file()?.into_raw_fd();
        if fd > 2 {
            // SAFETY: the descriptor was just opened here.
            unsafe { libc::close(fd) };
            return Ok(());
        }
    }
}

/// Every process costs the agent three descriptors. The limit it was started with is what processes get, see `child`.
fn raise_open_files() {
    // SAFETY: plain calls with a structure that lives through them.
    unsafe {
        let mut limit: libc::rlimit64 = std::mem::zeroed();
        if libc::getrlimit64(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            // Set once, before anything is spawned.
            let _ = INHERITED_OPEN_FILES.set(limit);
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit64(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// One arena and a fixed threshold: freed output goes back to the system instead of staying per thread.
fn settle_memory() {
    // SAFETY: called before other threads exist.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES);
    }
}

/// PID 1 must not end by a stray signal from inside; SIGKILL from the runtime still ends it. Elsewhere it is an
/// ordinary process that may be stopped.
fn ignore_signals() {
    let stray: &[libc::c_int] = if std::process::id() == 1 {
        &AGENT_SIGNALS
    } else {
        &[libc::SIGPIPE]
    };
    // SAFETY: dispositions without handlers.
    unsafe {
        for &signal in stray {
            libc::signal(signal, libc::SIG_IGN);
        }
        // Ignored, as a parent may have left it, it would throw exit codes away.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
}
