//! Making directories.

use std::io;
use std::path::{Path, PathBuf};

use super::directory::{Directory, kind, status_at};
use super::path::{GuestPath, shown};
use crate::errors::{GuestError, Outcome};

pub const DIRECTORY_MODE: libc::mode_t = 0o755;

/// Makes one directory, or with `parents` the whole way to it; whether anything was made.
pub fn make(path: &GuestPath, mode: Option<libc::mode_t>, parents: bool) -> Outcome<bool> {
    let wanted = mode.unwrap_or(DIRECTORY_MODE);
    if parents && is_directory(path.as_path()) {
        return Ok(false);
    }
    let (parent, name) = path.split()?;
    if parents {
        make_all(&parent, DIRECTORY_MODE)?;
    }
    let failed = |cause: io::Error| GuestError::from_file_error(&cause, &path.shown());
    let directory = Directory::locate(&parent).map_err(failed)?;
    match directory.make_directory(&name, wanted) {
        Err(cause)
            if parents && cause.kind() == io::ErrorKind::AlreadyExists && is_directory(path.as_path()) =>
        {
            Ok(false)
        }
        Err(cause) => Err(failed(cause)),
        Ok(()) => {
            if mode.is_some() {
                // The mask of the agent does not count where a mode was asked for.
                directory.set_mode(&name, wanted).map_err(failed)?;
            }
            Ok(true)
        }
    }
}

/// Every missing directory on the way, like `mkdir -p`.
pub fn make_all(path: &Path, mode: libc::mode_t) -> Outcome<()> {
    let mut made = PathBuf::from("/");
    for part in path.components() {
        made.push(part);
        if is_directory(&made) {
            continue;
        }
        let (parent, name) = GuestPath::new(made.as_os_str().as_encoded_bytes())?.split()?;
        let result = Directory::locate(&parent).and_then(|directory| directory.make_directory(&name, mode));
        match result {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                if !is_directory(&made) {
                    return Err(GuestError::from_file_errno(libc::ENOTDIR, &shown(&made)));
                }
            }
            other => other.map_err(|cause| GuestError::from_file_error(&cause, &shown(&made)))?,
        }
    }
    Ok(())
}

fn is_directory(path: &Path) -> bool {
    status_at(path, true).is_ok_and(|status| kind(&status) == libc::S_IFDIR)
}
