//! Moving: one rename where the kernel can, else a copy and a removal.

use std::io;

use super::copy::copy;
use super::directory::Directory;
use super::long_work::GivenUp;
use super::path::{GuestPath, shown};
use super::protected::unprotected;
use super::remove::remove;
use crate::errors::{GuestError, Outcome};

pub fn move_to(from: &GuestPath, to: &GuestPath, overwrite: bool, given_up: &GivenUp) -> Outcome<()> {
    let (from_parent, from_name) = from.split()?;
    let (to_parent, to_name) = to.split()?;
    let open = |parent: &std::path::Path| {
        Directory::locate(parent).map_err(|cause| GuestError::from_file_error(&cause, &shown(parent)))
    };
    let (source, target) = (open(&from_parent)?, open(&to_parent)?);
    let failed =
        |cause: &io::Error, subject: &GuestPath| GuestError::from_file_error(cause, &subject.shown());
    source.status(&from_name).map_err(|cause| failed(&cause, from))?;
    unprotected(&source, &from_name)?;
    unprotected(&target, &to_name)?;
    match source.rename(&from_name, &target, &to_name, overwrite) {
        Ok(()) => Ok(()),
        Err(cause) if cause.raw_os_error() == Some(libc::EXDEV) => {
            copy(from, to, overwrite, given_up)?;
            remove(from, true, given_up)
        }
        Err(cause) => Err(failed(&cause, to)),
    }
}
