//! Mode and owner, of one entry or a tree. Links inside a tree get the owner, never the mode, and are not followed.
//!
//! Devices, and the places that nothing may remove (see `protected`), can be changed like anything else, as `chmod` in a
//! container can: the kernel asks whether the chosen user may, each sandbox has its own `/dev`, and a mode that was a
//! mistake is set back by the same call, while a device that is removed is gone for good.

use std::ffi::CStr;
use std::io;
use std::path::Path;

use super::directory::{Directory, kind, name_of, status_at};
use super::long_work::GivenUp;
use super::path::{GuestPath, shown};
use crate::errors::{ErrorCode, GuestError, Outcome};
use crate::limits::TREE_DEPTH_MAX;

/// Leaves an id as it is.
const KEEP: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
pub struct Change {
    pub mode: Option<libc::mode_t>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
}

pub fn chmod(path: &GuestPath, change: Change, recursive: bool, given_up: &GivenUp) -> Outcome<()> {
    let failed = |cause: io::Error| GuestError::from_file_error(&cause, &path.shown());
    let status = status_at(path.as_path(), true).map_err(failed)?;
    if kind(&status) == libc::S_IFDIR {
        // The root itself may be meant, which has no name to work on from above.
        let directory = Directory::open(path.as_path()).map_err(failed)?;
        if recursive {
            below(&directory, change, path.as_path(), 0, given_up)?;
        }
        return apply(&directory, c".", change).map_err(failed);
    }
    let real = std::fs::canonicalize(path.as_path()).map_err(failed)?;
    let (parent, name) = GuestPath::new(real.as_os_str().as_encoded_bytes())?.split()?;
    let directory = Directory::locate(&parent).map_err(failed)?;
    apply(&directory, &name, change).map_err(failed)
}

fn below(
    directory: &Directory,
    change: Change,
    path: &Path,
    depth: usize,
    given_up: &GivenUp,
) -> Outcome<()> {
    let failed = |cause: io::Error| GuestError::from_file_error(&cause, &shown(path));
    if depth > TREE_DEPTH_MAX {
        return Err(GuestError::new(
            ErrorCode::PathInvalid,
            format!("The tree is deeper than {TREE_DEPTH_MAX} directories; change its parts."),
        ));
    }
    for entry in directory.entries().map_err(failed)? {
        given_up.check()?;
        let entry = entry.map_err(failed)?;
        let full = path.join(name_of(&entry));
        let named = |cause: io::Error| GuestError::from_file_error(&cause, &shown(&full));
        let status = directory.status(&entry).map_err(named)?;
        if kind(&status) == libc::S_IFDIR {
            below(
                &directory.open_child(&entry).map_err(named)?,
                change,
                &full,
                depth + 1,
                given_up,
            )?;
        }
        let link = kind(&status) == libc::S_IFLNK;
        let change = if link {
            Change { mode: None, ..change }
        } else {
            change
        };
        apply(directory, &entry, change).map_err(named)?;
    }
    Ok(())
}

/// Owner first: a change of owner takes setuid bits away that the mode may ask for.
fn apply(directory: &Directory, name: &CStr, change: Change) -> io::Result<()> {
    if change.uid.is_some() || change.gid.is_some() {
        directory.set_owner(name, change.uid.unwrap_or(KEEP), change.gid.unwrap_or(KEEP))?;
    }
    match change.mode {
        Some(mode) => directory.set_mode(name, mode),
        None => Ok(()),
    }
}
