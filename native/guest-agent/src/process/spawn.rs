//! Starts a planned process: descriptors, then the child, then named errors.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::sync::OnceLock;

use super::child::{self, ChildFailure, ChildPlan, Stage};
use super::plan::SpawnPlan;
use super::pty;
use crate::errors::{ErrorCode, GuestError, Outcome};
use crate::limits::OUTPUT_READ_BYTES;

/// A running leader and the agent's ends of what it was given.
#[derive(Debug)]
pub struct Spawned {
    pub pid: libc::pid_t,
    pub ends: Ends,
}

#[derive(Debug)]
pub enum Ends {
    Pipes {
        stdin: Option<OwnedFd>,
        stdout: OwnedFd,
        stderr: OwnedFd,
    },
    Terminal {
        master: OwnedFd,
    },
}

/// Blocks until the child executed or failed. `door` takes the child into its control group.
pub fn spawn(plan: &SpawnPlan, door: Option<BorrowedFd<'_>>) -> Outcome<Spawned> {
    match plan.tty {
        Some(size) => {
            let terminal = pty::open(size, &plan.user).map_err(|cause| descriptors(&cause))?;
            let slave = terminal.slave.as_raw_fd();
            let pid = launch(plan, [slave; 3], true, door)?;
            Ok(Spawned {
                pid,
                ends: Ends::Terminal {
                    master: terminal.master,
                },
            })
        }
        None => spawn_on_pipes(plan, door).map_err(|failure| match failure {
            PipeFailure::Descriptors(cause) => descriptors(&cause),
            PipeFailure::Launch(error) => error,
        }),
    }
}

enum PipeFailure {
    Descriptors(io::Error),
    Launch(GuestError),
}

fn spawn_on_pipes(plan: &SpawnPlan, door: Option<BorrowedFd<'_>>) -> Result<Spawned, PipeFailure> {
    let (stdin_read, stdin_write) = if plan.stdin {
        let (read, write) = pipe().map_err(PipeFailure::Descriptors)?;
        never_wait(&write).map_err(PipeFailure::Descriptors)?;
        (Input::Own(read), Some(write))
    } else {
        (nothing_to_read().map_err(PipeFailure::Descriptors)?, None)
    };
    let (stdout, stdout_write) = pipe().map_err(PipeFailure::Descriptors)?;
    let (stderr, stderr_write) = pipe().map_err(PipeFailure::Descriptors)?;
    never_wait(&stdout).map_err(PipeFailure::Descriptors)?;
    never_wait(&stderr).map_err(PipeFailure::Descriptors)?;
    let stdio = [
        stdin_read.as_raw_fd(),
        stdout_write.as_raw_fd(),
        stderr_write.as_raw_fd(),
    ];
    let pid = launch(plan, stdio, false, door).map_err(PipeFailure::Launch)?;
    Ok(Spawned {
        pid,
        ends: Ends::Pipes {
            stdin: stdin_write,
            stdout,
            stderr,
        },
    })
}

fn launch(
    plan: &SpawnPlan,
    stdio: [i32; 3],
    tty: bool,
    door: Option<BorrowedFd<'_>>,
) -> Outcome<libc::pid_t> {
    let child = ChildPlan {
        candidates: &plan.candidates,
        argv: &plan.argv,
        envp: &plan.envp,
        cwd: &plan.cwd,
        user: &plan.user,
        limits: plan.limits,
        stdio,
        tty,
        cgroup: door.map(|door| door.as_raw_fd()),
    };
    child::launch(&child).map_err(named)
}

/// The child's standard input.
enum Input {
    Own(OwnedFd),
    Shared(&'static File),
}

impl AsRawFd for Input {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Own(fd) => fd.as_raw_fd(),
            Self::Shared(file) => file.as_raw_fd(),
        }
    }
}

/// `/dev/null`, opened once: most processes get it.
static NOTHING: OnceLock<File> = OnceLock::new();

/// An input that ends at once. An image may lack `/dev/null`; a pipe nobody writes to ends as well.
fn nothing_to_read() -> io::Result<Input> {
    if let Some(file) = NOTHING.get() {
        return Ok(Input::Shared(file));
    }
    let null = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOFOLLOW)
        .open("/dev/null");
    match null {
        // Only a device has no position that processes would share.
        Ok(file) if is_device(&file) => Ok(Input::Shared(NOTHING.get_or_init(|| file))),
        Ok(file) => Ok(Input::Own(file.into())),
        Err(_) => pipe().map(|(read, _)| Input::Own(read)),
    }
}

fn is_device(file: &File) -> bool {
    file.metadata()
        .is_ok_and(|metadata| metadata.file_type().is_char_device())
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the call fills two descriptors that nobody else owns.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) < 0 {
            return Err(io::Error::last_os_error());
        }
        let [read, write] = ends;
        Ok((OwnedFd::from_raw_fd(read), OwnedFd::from_raw_fd(write)))
    }
}

/// Asks for a larger pipe, where a flood makes it worth a call; an ordinary one does as well, only slower.
pub fn widen(fd: &impl AsRawFd) {
    let wanted = libc::c_int::try_from(OUTPUT_READ_BYTES).unwrap_or(0);
    // SAFETY: a plain call on an open descriptor.
    unsafe {
        libc::fcntl(fd.as_raw_fd(), libc::F_SETPIPE_SZ, wanted);
    }
}

/// For the agent's end of a new pipe, which has no other flags yet.
fn never_wait(fd: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: a plain flag call on an open descriptor.
    if unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

pub fn set_nonblocking(fd: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: plain flag calls on an open descriptor.
    unsafe {
        let flags = libc::fcntl(fd.as_raw_fd(), libc::F_GETFL);
        if flags < 0 || libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Opens `/dev/null` for standard descriptors the agent was started without.
pub fn null_file() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/null")
}

fn descriptors(cause: &io::Error) -> GuestError {
    match cause.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => GuestError::new(
            ErrorCode::TooManyOpenFiles,
            "Too many files are open in the sandbox; end some processes and try again.",
        ),
        Some(libc::ENOSPC) => GuestError::new(
            ErrorCode::ProcessLimit,
            "No terminal is left in the sandbox; end some processes and try again.",
        ),
        _ => GuestError::internal(format!(
            "The process could not get its input and output: {cause}; try again."
        )),
    }
}

fn named(failure: ChildFailure) -> GuestError {
    let cause = io::Error::from_raw_os_error(failure.errno);
    match (failure.stage, failure.errno) {
        (Stage::Clone, libc::EAGAIN | libc::ENOMEM) | (Stage::Execute, libc::EAGAIN) => GuestError::new(
            ErrorCode::ProcessLimit,
            "The sandbox has no room for another process; end some and try again.",
        ),
        (Stage::Directory, libc::EACCES | libc::EPERM) => GuestError::new(
            ErrorCode::PermissionDenied,
            "The user may not enter cwd; choose another user or directory.",
        ),
        (Stage::Directory, _) => GuestError::new(
            ErrorCode::CwdNotFound,
            "cwd is not a directory in the sandbox; create it or choose another.",
        ),
        (Stage::Execute, libc::ENOENT | libc::ENOTDIR) => GuestError::new(
            ErrorCode::ExecutableNotFound,
            "The program, or the interpreter it names, is not in the sandbox; check the name and PATH.",
        ),
        (Stage::Execute, libc::E2BIG) => {
            GuestError::invalid("argv and env together are too long for the kernel; send less.")
        }
        (Stage::Execute, _) => GuestError::new(
            ErrorCode::ExecutableNotRunnable,
            format!("The program cannot be run by this user: {cause}; check its mode and format."),
        ),
        (Stage::User, _) => GuestError::new(
            ErrorCode::UserNotFound,
            "The user cannot be taken on in this sandbox; choose another.",
        ),
        (stage, _) => GuestError::internal(format!(
            "The process could not be started ({stage:?}): {cause}; try again."
        )),
    }
}
