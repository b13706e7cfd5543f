//! Places that belong to the sandbox itself: nothing removes them, moves them or puts something in their place.

use std::ffi::CStr;
use std::io;
use std::path::{Path, PathBuf};

use super::directory::{Directory, kind, name_of};
use super::path::shown;
use crate::errors::{ErrorCode, GuestError, Outcome};

/// What the sandbox cannot live without.
const PROTECTED: [&str; 6] = ["/", "/proc", "/sys", "/dev", "/run", "/run/sandglass"];

/// The real path of an entry, links of its directory resolved; refused where it is protected.
pub fn unprotected(directory: &Directory, name: &CStr) -> Outcome<PathBuf> {
    let failed = |cause: io::Error| GuestError::from_file_error(&cause, &shown(Path::new(name_of(name))));
    let real = directory.real_path().map_err(failed)?.join(name_of(name));
    if PROTECTED.iter().any(|protected| real == Path::new(protected))
        || real.starts_with("/run/sandglass")
        || is_device(directory, name, &real)
    {
        return Err(protected(&real));
    }
    Ok(real)
}

/// Devices and the links beside them, such as `/dev/null` and `/dev/stdin`; what lies in `/dev/shm` is the user's.
fn is_device(directory: &Directory, name: &CStr, real: &Path) -> bool {
    real.starts_with("/dev")
        && !real.starts_with("/dev/shm")
        && directory
            .status(name)
            .is_ok_and(|status| matches!(kind(&status), libc::S_IFCHR | libc::S_IFBLK | libc::S_IFLNK))
}

pub fn protected(path: &Path) -> GuestError {
    GuestError::new(
        ErrorCode::PathInvalid,
        format!("{} belongs to the sandbox itself and stays.", shown(path)),
    )
}
