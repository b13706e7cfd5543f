//! Which version of a file this is: inode, time of change, size.

use super::directory::Status;

pub fn of(status: &Status) -> String {
    let modified = i128::from(status.st_mtime) * 1_000_000_000 + i128::from(status.st_mtime_nsec);
    format!("\"{}-{modified}-{}\"", status.st_ino, status.st_size)
}
