//! Doing file work with the rights of a user of the guest.
//!
//! The effective ids and groups of the one thread are changed by raw system calls, for the length of one piece of
//! work. `setfsuid` would be the narrower tool, but gVisor does not have it; a forked helper per request would cost a
//! spawn. The real and saved ids stay root's, so the user's processes cannot signal or trace the thread, and the way
//! back is open. An open file keeps working after the change back, so streaming needs no ids.
//! Must stay true: a thread never returns to the pool with somebody's ids. If the way back failed, it stays out for
//! good, and the agent is one thread poorer.

use crate::blocking::run_blocking;
use crate::errors::{ErrorCode, GuestError, Outcome};
use crate::users::{Accounts, User};

const KEEP: libc::uid_t = libc::uid_t::MAX;

struct Borrowed {
    groups: Vec<libc::gid_t>,
    gid: libc::gid_t,
    uid: libc::uid_t,
}

/// Resolves `user` and runs `work` with its rights on a thread that may block.
pub async fn run_as<T: Send + 'static>(
    user: Option<String>,
    work: impl FnOnce(&User) -> Outcome<T> + Send + 'static,
) -> Outcome<T> {
    run_blocking(move || {
        let user = resolve(user.as_deref())?;
        with_rights_of(&user, || work(&user))
    })
    .await
}

pub fn resolve(user: Option<&str>) -> Outcome<User> {
    Accounts::read().resolve(user.unwrap_or("root"))
}

/// Runs `work` on this thread with the rights of `user`.
pub fn with_rights_of<T>(user: &User, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let own_uid = effective_uid();
    if user.uid == own_uid && user.gid == effective_gid() {
        return work();
    }
    let _borrowed = Borrowed::take(user).ok_or_else(|| {
        GuestError::new(
            ErrorCode::UserNotFound,
            "The user cannot be taken on in this sandbox; choose another.",
        )
    })?;
    work()
}

fn effective_uid() -> libc::uid_t {
    // SAFETY: a plain read.
    unsafe { libc::geteuid() }
}

fn effective_gid() -> libc::gid_t {
    // SAFETY: a plain read.
    unsafe { libc::getegid() }
}

impl Borrowed {
    fn take(user: &User) -> Option<Self> {
        let borrowed = Self {
            groups: own_groups()?,
            gid: effective_gid(),
            uid: effective_uid(),
        };
        // A failure half-way drops `borrowed`, which undoes what was done.
        let taken = set_groups(&user.groups) && set_effective_gid(user.gid) && set_effective_uid(user.uid);
        taken.then_some(borrowed)
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if set_effective_uid(self.uid) && set_effective_gid(self.gid) && set_groups(&self.groups) {
            return;
        }
        eprintln!("sandglass-guest: a thread could not give back a user's rights and stays out");
        loop {
            std::thread::park();
        }
    }
}

fn own_groups() -> Option<Vec<libc::gid_t>> {
    // SAFETY: the second call gets room for as many groups as the first one counted.
    unsafe {
        let count = usize::try_from(libc::getgroups(0, std::ptr::null_mut())).ok()?;
        let mut groups = vec![0; count];
        let room = libc::c_int::try_from(count).ok()?;
        let got = libc::getgroups(room, groups.as_mut_ptr());
        groups.truncate(usize::try_from(got).ok()?);
        Some(groups)
    }
}

fn set_groups(groups: &[libc::gid_t]) -> bool {
    // SAFETY: raw call, this thread only; pointer and length are those of a live slice.
    unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) == 0 }
}

fn set_effective_gid(gid: libc::gid_t) -> bool {
    // SAFETY: raw call, this thread only.
    unsafe { libc::syscall(libc::SYS_setresgid, KEEP, gid, KEEP) == 0 }
}

fn set_effective_uid(uid: libc::uid_t) -> bool {
    // SAFETY: raw call, this thread only.
    unsafe { libc::syscall(libc::SYS_setresuid, KEEP, uid, KEEP) == 0 }
}
