//! Copying files and trees: modes and times kept, links copied as links, nothing left out silently.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use super::directory::{Directory, Status, kind, name_of, permissions};
use super::long_work::GivenUp;
use super::path::{GuestPath, shown};
use super::protected::unprotected;
use super::write::temporary_name;
use crate::errors::{ErrorCode, GuestError, Outcome};
use crate::limits::{FILE_CHUNK_BYTES, TREE_DEPTH_MAX};

/// The copy is made under a temporary name and then renamed, so nobody sees half of it under its own.
pub fn copy(from: &GuestPath, to: &GuestPath, overwrite: bool, given_up: &GivenUp) -> Outcome<()> {
    let (from_parent, from_name) = from.split()?;
    let (to_parent, to_name) = to.split()?;
    let open = |parent: &Path| {
        Directory::locate(parent).map_err(|cause| GuestError::from_file_error(&cause, &shown(parent)))
    };
    let (source, target) = (open(&from_parent)?, open(&to_parent)?);
    let status = source
        .status(&from_name)
        .map_err(|cause| GuestError::from_file_error(&cause, &from.shown()))?;
    refuse_into_itself(&source, &from_name, &target, &status, from)?;
    unprotected(&target, &to_name)?;
    let temporary = temporary_name()?;
    let copying = Copying {
        given_up,
        device: status.st_dev,
    };
    let result = copying
        .entry(&source, &from_name, &target, &temporary, from.as_path(), 0)
        .and_then(|()| {
            target
                .rename(&temporary, &target, &to_name, overwrite)
                .map_err(|cause| GuestError::from_file_error(&cause, &to.shown()))
        });
    if result.is_err() {
        discard(&target, &temporary, 0);
    }
    result
}

struct Copying<'a> {
    given_up: &'a GivenUp,
    device: libc::dev_t,
}

impl Copying<'_> {
    fn entry(
        &self,
        source: &Directory,
        name: &CStr,
        target: &Directory,
        new_name: &CStr,
        path: &Path,
        depth: usize,
    ) -> Outcome<()> {
        self.given_up.check()?;
        let failed = |cause: io::Error| GuestError::from_file_error(&cause, &shown(path));
        let status = source.status(name).map_err(failed)?;
        match kind(&status) {
            libc::S_IFREG => self.file(source, name, target, new_name, path)?,
            libc::S_IFLNK => {
                let link = source.read_link(name).map_err(failed)?;
                return target.make_link(new_name, &link).map_err(failed);
            }
            libc::S_IFDIR => self.tree(source, name, target, new_name, path, depth)?,
            _ => {
                return Err(GuestError::new(
                    ErrorCode::NotARegularFile,
                    format!(
                        "{} is neither file, directory nor link; leave it out.",
                        shown(path)
                    ),
                ));
            }
        }
        target
            .set_mode(new_name, permissions(&status) & 0o1777)
            .map_err(failed)?;
        target
            .set_modified(new_name, status.st_mtime, status.st_mtime_nsec)
            .map_err(failed)
    }

    fn tree(
        &self,
        source: &Directory,
        name: &CStr,
        target: &Directory,
        new_name: &CStr,
        path: &Path,
        depth: usize,
    ) -> Outcome<()> {
        let failed = |cause: io::Error| GuestError::from_file_error(&cause, &shown(path));
        if depth > TREE_DEPTH_MAX {
            return Err(GuestError::new(
                ErrorCode::PathInvalid,
                format!("The tree is deeper than {TREE_DEPTH_MAX} directories; copy its parts."),
            ));
        }
        let from = source.open_child(name).map_err(failed)?;
        if from.own_status().map_err(failed)?.st_dev != self.device {
            return Err(GuestError::new(
                ErrorCode::PathInvalid,
                format!("{} is another file system; copy its parts.", shown(path)),
            ));
        }
        target.make_directory(new_name, 0o700).map_err(failed)?;
        let to = target.open_child(new_name).map_err(failed)?;
        for entry in from.entries().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            self.entry(&from, &entry, &to, &entry, &path.join(name_of(&entry)), depth + 1)?;
        }
        Ok(())
    }

    fn file(
        &self,
        source: &Directory,
        name: &CStr,
        target: &Directory,
        new_name: &CStr,
        path: &Path,
    ) -> Outcome<()> {
        let failed = |cause: io::Error| GuestError::from_file_error(&cause, &shown(path));
        let mut from = source
            .open_file(name, libc::O_RDONLY | libc::O_NONBLOCK, 0)
            .map_err(failed)?;
        let mut to = target
            .open_file(new_name, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL, 0o600)
            .map_err(failed)?;
        let mut chunk = vec![0; FILE_CHUNK_BYTES];
        loop {
            self.given_up.check()?;
            let count = read_some(&mut from, &mut chunk).map_err(failed)?;
            if count == 0 {
                return Ok(());
            }
            to.write_all(chunk.get(..count).unwrap_or_default())
                .map_err(failed)?;
        }
    }
}

fn read_some(file: &mut File, chunk: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(chunk) {
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// A tree inside itself would never end.
fn refuse_into_itself(
    source: &Directory,
    name: &CStr,
    target: &Directory,
    status: &Status,
    from: &GuestPath,
) -> Outcome<()> {
    if kind(status) != libc::S_IFDIR {
        return Ok(());
    }
    let failed = |cause: io::Error| GuestError::from_file_error(&cause, &from.shown());
    let from_real = source.real_path().map_err(failed)?.join(name_of(name));
    if target.real_path().map_err(failed)?.starts_with(&from_real) {
        return Err(GuestError::new(
            ErrorCode::PathInvalid,
            "A directory cannot be copied or moved into itself.",
        ));
    }
    Ok(())
}

/// Removes what a failed copy left, as far as it can.
pub fn discard(parent: &Directory, name: &CStr, depth: usize) {
    if parent.remove_file(name).is_ok() || depth > TREE_DEPTH_MAX {
        return;
    }
    if let Ok(directory) = parent.open_child(name)
        && let Ok(entries) = directory.entries()
    {
        for entry in entries.flatten() {
            discard(&directory, &entry, depth + 1);
        }
    }
    let _ = parent.remove_directory(name);
}
