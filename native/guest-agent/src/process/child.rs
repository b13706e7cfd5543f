//! What runs between `clone` and `execve`, in a child that shares the agent's memory.
//!
//! `CLONE_VM | CLONE_VFORK`: the calling thread sleeps until the child has executed or ended, no page table is
//! copied, and other threads of the agent go on. `fork` costs half as much again inside gVisor and grows with the
//! agent; a helper process or `posix_spawn` cannot set session, terminal, directory and ids in the right order.
//! Must stay true: nothing here allocates, takes a lock, panics or returns to safe code; every call is a raw
//! system call, because libc's `setuid` family would change all threads of the agent; signals are blocked from
//! before the clone until the handlers are gone.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::RawFd;
use std::ptr;

use crate::boot::INHERITED_OPEN_FILES;
use crate::identity::ResourceLimits;
use crate::users::User;

/// The step of the child that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Clone,
    Session,
    Stdio,
    Terminal,
    Limits,
    User,
    Directory,
    Execute,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildFailure {
    pub stage: Stage,
    pub errno: i32,
}

/// Everything the child needs, owned by the waiting parent.
pub struct ChildPlan<'a> {
    pub candidates: &'a [CString],
    pub argv: &'a [CString],
    pub envp: &'a [CString],
    pub cwd: &'a CStr,
    pub user: &'a User,
    pub limits: ResourceLimits,
    pub stdio: [RawFd; 3],
    pub tty: bool,
    /// Open `cgroup.procs` of the process's own group, where there is one.
    pub cgroup: Option<RawFd>,
}

struct Shared {
    candidates: *const *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
    cwd: *const c_char,
    uid: u32,
    gid: u32,
    groups: *const u32,
    groups_len: usize,
    open_files: Option<libc::rlimit64>,
    processes: Option<libc::rlimit64>,
    stdio: [RawFd; 3],
    tty: bool,
    cgroup: RawFd,
    failure: Option<ChildFailure>,
}

const STACK_BYTES: usize = 64 << 10;
const STACK_ALIGN: usize = 16;
/// Kernel's size of a signal set.
const SIGSET_BYTES: usize = 8;

/// Runs the plan; the pid when `execve` succeeded.
pub fn launch(plan: &ChildPlan<'_>) -> Result<libc::pid_t, ChildFailure> {
    let candidates = pointers(plan.candidates);
    let argv = pointers(plan.argv);
    let envp = pointers(plan.envp);
    let mut shared = Shared {
        candidates: candidates.as_ptr(),
        argv: argv.as_ptr(),
        envp: envp.as_ptr(),
        cwd: plan.cwd.as_ptr(),
        uid: plan.user.uid,
        gid: plan.user.gid,
        groups: plan.user.groups.as_ptr(),
        groups_len: plan.user.groups.len(),
        open_files: fixed(plan.limits.nofile).or_else(|| INHERITED_OPEN_FILES.get().copied()),
        processes: fixed(plan.limits.nproc),
        stdio: plan.stdio,
        tty: plan.tty,
        cgroup: plan.cgroup.unwrap_or(-1),
        failure: None,
    };
    let mut stack: Vec<u8> = Vec::with_capacity(STACK_BYTES);
    let end = stack.as_mut_ptr().wrapping_add(STACK_BYTES);
    let top = end.wrapping_sub(end as usize % STACK_ALIGN);

    let blocked = BlockedSignals::all();
    let shared_pointer: *mut Shared = &raw mut shared;
    // SAFETY: the stack is large enough and ends aligned; `shared` and all it points to outlive the child's use of
    // them because CLONE_VFORK keeps this thread here until the child executed or ended.
    let pid = unsafe {
        libc::clone(
            child_main,
            top.cast(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            shared_pointer.cast(),
        )
    };
    let clone_errno = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EAGAIN);
    drop(blocked);
    if pid < 0 {
        return Err(ChildFailure {
            stage: Stage::Clone,
            errno: clone_errno,
        });
    }
    // SAFETY: the child is gone from this memory; the read is volatile because it wrote behind the compiler's back.
    match unsafe { ptr::read_volatile(&raw const (*shared_pointer).failure) } {
        Some(failure) => Err(failure),
        None => Ok(pid),
    }
}

/// A limit that was asked for; zero asks for none.
fn fixed(limit: u64) -> Option<libc::rlimit64> {
    (limit > 0).then_some(libc::rlimit64 {
        rlim_cur: limit,
        rlim_max: limit,
    })
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings
        .iter()
        .map(|string| string.as_ptr())
        .chain([ptr::null()])
        .collect()
}

/// Blocks every signal on this thread until dropped.
struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    fn all() -> Self {
        // SAFETY: both sets are plain data that the calls fill in.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            Self(before)
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set is the one this thread had before.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut());
        }
    }
}

extern "C" fn child_main(argument: *mut c_void) -> c_int {
    let shared: *mut Shared = argument.cast();
    // SAFETY: `argument` is the Shared of the parent, which waits; only this child touches it meanwhile.
    unsafe {
        let failure = become_program(&*shared);
        ptr::write_volatile(&raw mut (*shared).failure, Some(failure));
        libc::syscall(libc::SYS_exit_group, 127);
    }
    127
}

/// Returns only when something failed.
///
/// # Safety
/// Runs in the vforked child with a valid plan.
unsafe fn become_program(shared: &Shared) -> ChildFailure {
    // SAFETY: raw system calls on plain data of the plan; nothing here allocates or unwinds.
    unsafe {
        if shared.cgroup >= 0 {
            // Without its own group the process is still found through session and marker.
            libc::syscall(libc::SYS_write, shared.cgroup, c"0".as_ptr(), 1usize);
        }
        if libc::syscall(libc::SYS_setsid) < 0 {
            return failed(Stage::Session);
        }
        for (target, source) in (0..3).zip(shared.stdio) {
            if libc::syscall(libc::SYS_dup2, source, target) < 0 {
                return failed(Stage::Stdio);
            }
        }
        if shared.tty && libc::syscall(libc::SYS_ioctl, 0, libc::TIOCSCTTY, 0) < 0 {
            return failed(Stage::Terminal);
        }
        for (resource, limit) in [
            (libc::RLIMIT_NOFILE, shared.open_files),
            (libc::RLIMIT_NPROC, shared.processes),
        ] {
            if let Some(limit) = limit {
                // A limit that may not be raised here stays the lower one it is.
                let limit: *const libc::rlimit64 = &raw const limit;
                libc::syscall(
                    libc::SYS_prlimit64,
                    0,
                    resource,
                    limit,
                    ptr::null_mut::<libc::rlimit64>(),
                );
            }
        }
        if libc::syscall(libc::SYS_setgroups, shared.groups_len, shared.groups) < 0
            || libc::syscall(libc::SYS_setresgid, shared.gid, shared.gid, shared.gid) < 0
            || libc::syscall(libc::SYS_setresuid, shared.uid, shared.uid, shared.uid) < 0
        {
            return failed(Stage::User);
        }
        if libc::syscall(libc::SYS_chdir, shared.cwd) < 0 {
            return failed(Stage::Directory);
        }
        libc::syscall(libc::SYS_umask, 0o022);
        reset_signals();
        execute(shared)
    }
}

/// # Safety
/// As [`become_program`].
unsafe fn reset_signals() {
    // SAFETY: plain data; handlers must go before the mask is lifted, or the agent's would run in this child.
    unsafe {
        let mut default: libc::sigaction = std::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        for signal in AGENT_SIGNALS {
            libc::sigaction(signal, &raw const default, ptr::null_mut());
        }
        let none: u64 = 0;
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const none,
            ptr::null_mut::<u64>(),
            SIGSET_BYTES,
        );
    }
}

/// Signals the agent handles or ignores; see `boot`.
pub const AGENT_SIGNALS: [c_int; 7] = [
    libc::SIGPIPE,
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// # Safety
/// As [`become_program`].
unsafe fn execute(shared: &Shared) -> ChildFailure {
    let mut refused = None;
    let mut candidate = shared.candidates;
    // SAFETY: the three arrays end in a null pointer.
    unsafe {
        while !(*candidate).is_null() {
            libc::syscall(libc::SYS_execve, *candidate, shared.argv, shared.envp);
            let failure = failed(Stage::Execute);
            match failure.errno {
                libc::ENOENT | libc::ENOTDIR | libc::ENAMETOOLONG => {}
                libc::EACCES => refused = Some(failure),
                _ => return failure,
            }
            candidate = candidate.add(1);
        }
    }
    refused.unwrap_or(ChildFailure {
        stage: Stage::Execute,
        errno: libc::ENOENT,
    })
}

/// # Safety
/// Reads `errno` of the thread whose memory the child borrows.
unsafe fn failed(stage: Stage) -> ChildFailure {
    // SAFETY: the location is valid for the thread the child runs as.
    let errno = unsafe { *libc::__errno_location() };
    ChildFailure { stage, errno }
}
