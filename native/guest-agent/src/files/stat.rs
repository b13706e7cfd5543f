//! One file's description.

use std::ffi::OsStr;
use std::path::Path;

use super::directory::{kind, status_at};
use super::info::{FileInfo, info};
use super::path::shown;
use crate::errors::{GuestError, Outcome};
use crate::users::Accounts;

pub fn stat(path: &Path, follow: bool) -> Outcome<FileInfo> {
    let status =
        status_at(path, follow).map_err(|cause| GuestError::from_file_error(&cause, &shown(path)))?;
    let target = if kind(&status) == libc::S_IFLNK {
        std::fs::read_link(path).ok()
    } else {
        None
    };
    Ok(info(
        path,
        &status,
        target.as_deref().map(OsStr::new),
        &Accounts::read(),
    ))
}
