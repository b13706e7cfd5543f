//! One warden per installation: a lock that the kernel releases when its holder dies, however it dies.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// `None` when another one holds it.
pub fn take(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)?;
    // SAFETY: takes and touches no memory; the descriptor is open.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(Some(file));
    }
    let cause = io::Error::last_os_error();
    if cause.kind() == io::ErrorKind::WouldBlock {
        Ok(None)
    } else {
        Err(cause)
    }
}
