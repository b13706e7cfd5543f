//! Removing: one entry, or a tree, links never followed, mounts never entered.

use std::ffi::CStr;
use std::io;
use std::path::{Path, PathBuf};

use super::directory::{Directory, kind, name_of};
use super::long_work::GivenUp;
use super::path::{GuestPath, shown};
use super::protected::{protected, unprotected};
use crate::errors::{ErrorCode, GuestError, Outcome};
use crate::limits::TREE_DEPTH_MAX;

pub fn remove(path: &GuestPath, recursive: bool, given_up: &GivenUp) -> Outcome<()> {
    let (parent, name) = path.split()?;
    let failed = |cause: io::Error| GuestError::from_file_error(&cause, &path.shown());
    let directory = Directory::locate(&parent).map_err(failed)?;
    let real = unprotected(&directory, &name)?;
    let status = directory.status(&name).map_err(failed)?;
    if kind(&status) != libc::S_IFDIR {
        return directory.remove_file(&name).map_err(failed);
    }
    if status.st_dev != directory.own_status().map_err(failed)?.st_dev {
        return Err(protected(&real));
    }
    if !recursive {
        return directory.remove_directory(&name).map_err(failed);
    }
    empty_and_remove(&directory, &name, status.st_dev, &real, 0, given_up)
}

/// The removal of a whole tree; also what a move over a mount ends with.
fn empty_and_remove(
    parent: &Directory,
    name: &CStr,
    device: libc::dev_t,
    path: &Path,
    depth: usize,
    given_up: &GivenUp,
) -> Outcome<()> {
    let failed = |cause: io::Error| GuestError::from_file_error(&cause, &shown(path));
    if depth > TREE_DEPTH_MAX {
        return Err(GuestError::new(
            ErrorCode::PathInvalid,
            format!("The tree is deeper than {TREE_DEPTH_MAX} directories; remove its lower part first."),
        ));
    }
    let directory = parent.open_child(name).map_err(failed)?;
    if directory.own_status().map_err(failed)?.st_dev != device {
        return Err(protected(path));
    }
    for entry in directory.entries().map_err(failed)? {
        given_up.check()?;
        let entry = entry.map_err(failed)?;
        match directory.remove_file(&entry) {
            Ok(()) => continue,
            Err(cause) => match cause.raw_os_error() {
                Some(libc::ENOENT) => continue,
                Some(libc::EISDIR | libc::EPERM | libc::EACCES) => {}
                _ => return Err(below(&cause, path, &entry)),
            },
        }
        let is_directory = directory
            .status(&entry)
            .is_ok_and(|status| kind(&status) == libc::S_IFDIR);
        if !is_directory {
            return Err(GuestError::from_file_errno(
                libc::EACCES,
                &shown(&path.join(name_of(&entry))),
            ));
        }
        empty_and_remove(
            &directory,
            &entry,
            device,
            &path.join(name_of(&entry)),
            depth + 1,
            given_up,
        )?;
    }
    match parent.remove_directory(name) {
        Err(cause) if cause.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        other => other.map_err(failed),
    }
}

fn below(cause: &io::Error, path: &Path, entry: &CStr) -> GuestError {
    let full: PathBuf = path.join(name_of(entry));
    GuestError::from_file_error(cause, &shown(&full))
}
