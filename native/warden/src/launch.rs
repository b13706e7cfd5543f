//! guard: launch.gate. A launch is inside of the group from its first instruction on, so that whatever a runtime starts is too. In a frozen group it
//! gets no further than that, and goes on when the group is let go.
//!
//! There are two ways in. `run` is born inside, which costs nothing, and is waited for. `become` joins and is then the program itself, for programs
//! that nobody waits for; joining waits for a grace period of the kernel, some milliseconds.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Of a program that a signal ended, as shells have it.
const ENDED_BY_SIGNAL: i32 = 128;
/// The launcher went away while its child stood at the gate.
const ABANDONED: libc::c_int = 125;

/// Of the kernel’s `sched.h`; the one of the libc crate is too narrow to hold it.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

pub struct Program {
    pub path: OsString,
    pub arguments: Vec<OsString>,
}

/// Does not return when it succeeds. @param gate directory of the group that is entered
pub fn r#become(gate: &Path, program: &Program) -> io::Error {
    let joined = OpenOptions::new()
        .write(true)
        .open(gate.join("cgroup.procs"))
        .and_then(|mut procs| procs.write_all(b"0"));
    match joined {
        Ok(()) => program.exec(),
        Err(cause) => io::Error::new(cause.kind(), format!("{}: {cause}", gate.display())),
    }
}

/// Its exit code. It ends with the caller, before it has begun or after.
pub fn run(gate: &Path, program: &Program) -> io::Result<i32> {
    let directory = File::open(gate)
        .map_err(|cause| io::Error::new(cause.kind(), format!("{}: {cause}", gate.display())))?;
    // SAFETY: takes and touches no memory.
    let own = unsafe { libc::getpid() };
    match born_inside(&directory)? {
        0 => {
            // SAFETY: takes and touches no memory.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            // SAFETY: takes and touches no memory.
            let parent = unsafe { libc::getppid() };
            if parent != own {
                // SAFETY: this process is a copy; `exit` would do twice what the other does.
                unsafe { libc::_exit(ABANDONED) };
            }
            Err(program.exec())
        }
        child => exit_code(child),
    }
}

impl Program {
    fn exec(&self) -> io::Error {
        let cause = Command::new(&self.path).args(&self.arguments).exec();
        io::Error::new(cause.kind(), format!("{}: {cause}", self.path.display()))
    }
}

/// As `fork`, but the child is in the group when it is born. This process has one thread, so all of it is copied.
fn born_inside(group: &File) -> io::Result<libc::pid_t> {
    // SAFETY: all of it are numbers, for which zero is a value.
    let mut how: libc::clone_args = unsafe { std::mem::zeroed() };
    how.flags = CLONE_INTO_CGROUP;
    how.exit_signal = libc::SIGCHLD.cast_unsigned().into();
    how.cgroup = u64::try_from(group.as_raw_fd()).unwrap_or(u64::MAX);
    // SAFETY: `how` has the size that is told and lives through the call; no stack is given, so the child goes on with its copy of this one.
    let child = unsafe { libc::syscall(libc::SYS_clone3, &raw const how, size_of::<libc::clone_args>()) };
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    libc::pid_t::try_from(child).map_err(io::Error::other)
}

fn exit_code(child: libc::pid_t) -> io::Result<i32> {
    let mut status = 0;
    // SAFETY: `status` lives through the call.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
        let cause = io::Error::last_os_error();
        if cause.kind() != io::ErrorKind::Interrupted {
            return Err(cause);
        }
    }
    Ok(if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        ENDED_BY_SIGNAL + libc::WTERMSIG(status)
    })
}
