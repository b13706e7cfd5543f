//! Unpacks a tar stream under one directory, and nowhere else.
//!
//! Every entry is reached by a walk of directory descriptors from the top that refuses links, so nothing in the
//! archive, and nothing that happens in the tree meanwhile, leads out of it. Links are created as they are and never
//! followed. Absolute names, `..`, devices and FIFOs are refused by name rather than repaired or dropped. Files
//! belong to the user who unpacks; setuid and setgid bits go. The top directory keeps its own mode.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::directory::{Directory, kind};
use super::path::shown;
use crate::errors::{ErrorCode, GuestError, Outcome};
use crate::limits::{ARCHIVE_CLOSED_DIRECTORIES_MAX, NAME_MAX_BYTES, TREE_DEPTH_MAX};
use crate::tar::reader::{Entry, Kind, Sink};

const MODE_MASK: u32 = 0o1777;
const DIRECTORY_MODE: libc::mode_t = 0o755;
const OWNER_ALL: libc::mode_t = 0o700;

/// A directory on the way to the current entry.
struct Step {
    name: CString,
    directory: Directory,
    /// Set when the walk leaves it, after its contents have changed it.
    modified: Option<i64>,
}

/// A directory whose mode would have kept its own contents out.
struct Closed {
    path: Vec<CString>,
    mode: libc::mode_t,
}

struct OpenFile {
    file: File,
    name: CString,
    depth: usize,
    modified: i64,
}

pub struct Unpacker {
    top: Directory,
    steps: Vec<Step>,
    file: Option<OpenFile>,
    closed: Vec<Closed>,
    current: String,
}

impl Unpacker {
    pub fn open(path: &Path) -> Outcome<Self> {
        let top = Directory::open(path).map_err(|cause| GuestError::from_file_error(&cause, &shown(path)))?;
        Ok(Self {
            top,
            steps: Vec::new(),
            file: None,
            closed: Vec::new(),
            current: String::new(),
        })
    }

    /// After the last entry: times and modes that had to wait.
    pub fn finish(&mut self) -> Outcome<()> {
        self.leave(0)?;
        // The deepest first: a closed directory bars the way to those below it.
        for closed in std::mem::take(&mut self.closed).into_iter().rev() {
            let Some((name, parents)) = closed.path.split_last() else {
                continue;
            };
            self.walk(parents, false)?;
            self.here()
                .set_mode(name, closed.mode)
                .map_err(|cause| self.failed(&cause))?;
        }
        self.leave(0)
    }

    fn here(&self) -> &Directory {
        self.steps.last().map_or(&self.top, |step| &step.directory)
    }

    fn at(&self, depth: usize) -> &Directory {
        depth
            .checked_sub(1)
            .and_then(|index| self.steps.get(index))
            .map_or(&self.top, |step| &step.directory)
    }

    /// Goes back up to `depth`, giving directories their times.
    fn leave(&mut self, depth: usize) -> Outcome<()> {
        while self.steps.len() > depth {
            let Some(step) = self.steps.pop() else {
                return Ok(());
            };
            if let Some(modified) = step.modified {
                self.here()
                    .set_modified(&step.name, modified, 0)
                    .map_err(|cause| self.failed(&cause))?;
            }
        }
        Ok(())
    }

    /// Goes to the directory `path` names from the top, making what is missing where it may.
    fn walk(&mut self, path: &[CString], make: bool) -> Outcome<()> {
        let common = self
            .steps
            .iter()
            .zip(path)
            .take_while(|(step, name)| step.name == **name)
            .count();
        self.leave(common)?;
        for name in path.get(common..).unwrap_or_default() {
            if self.steps.len() >= TREE_DEPTH_MAX {
                return Err(GuestError::new(
                    ErrorCode::ArchiveLimit,
                    format!("{} is deeper than {TREE_DEPTH_MAX} directories.", self.current),
                ));
            }
            let directory = match self.here().open_child(name) {
                Err(cause) if make && cause.raw_os_error() == Some(libc::ENOENT) => {
                    self.here()
                        .make_directory(name, DIRECTORY_MODE)
                        .map_err(|cause| self.failed(&cause))?;
                    self.here().open_child(name)
                }
                other => other,
            };
            let directory = directory.map_err(|cause| match cause.raw_os_error() {
                Some(libc::ELOOP | libc::ENOTDIR) => invalid(format!(
                    "{} leads through something that is not a directory of the tree.",
                    self.current
                )),
                _ => self.failed(&cause),
            })?;
            self.steps.push(Step {
                name: name.clone(),
                directory,
                modified: None,
            });
        }
        Ok(())
    }

    fn directory(&mut self, path: &[CString], entry: &Entry) -> Outcome<()> {
        let Some((name, parents)) = path.split_last() else {
            return Ok(());
        };
        self.walk(parents, true)?;
        let mode = entry.mode & MODE_MASK;
        match self.here().make_directory(name, mode | OWNER_ALL) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                let there = self.here().status(name).map_err(|cause| self.failed(&cause))?;
                if kind(&there) != libc::S_IFDIR {
                    return Err(invalid(format!(
                        "{} exists and is not a directory.",
                        self.current
                    )));
                }
                self.here()
                    .set_mode(name, mode | OWNER_ALL)
                    .map_err(|cause| self.failed(&cause))?;
            }
            other => other.map_err(|cause| self.failed(&cause))?,
        }
        if mode & OWNER_ALL != OWNER_ALL {
            if self.closed.len() >= ARCHIVE_CLOSED_DIRECTORIES_MAX {
                return Err(GuestError::new(
                    ErrorCode::ArchiveLimit,
                    format!(
                        "More than {ARCHIVE_CLOSED_DIRECTORIES_MAX} directories shut out their owner; open some."
                    ),
                ));
            }
            self.closed.push(Closed {
                path: path.to_vec(),
                mode,
            });
        }
        self.walk(path, false)?;
        if let Some(step) = self.steps.last_mut() {
            step.modified = Some(entry.modified);
        }
        Ok(())
    }

    fn regular(&mut self, name: &CStr, entry: &Entry) -> Outcome<()> {
        let create = |directory: &Directory| {
            directory.open_file(
                name,
                libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL,
                entry.mode & MODE_MASK,
            )
        };
        let file = match create(self.here()) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                self.clear(name)?;
                create(self.here())
            }
            other => other,
        };
        let file = file.map_err(|cause| self.failed(&cause))?;
        let depth = self.steps.len();
        self.file = Some(OpenFile {
            file,
            name: name.to_owned(),
            depth,
            modified: entry.modified,
        });
        Ok(())
    }

    /// Makes room for an entry that replaces what is there; a directory stays.
    fn clear(&self, name: &CStr) -> Outcome<()> {
        match self.here().remove_file(name) {
            Err(cause) if matches!(cause.raw_os_error(), Some(libc::EISDIR | libc::EPERM)) => {
                Err(GuestError::from_file_errno(libc::EISDIR, &self.current))
            }
            Err(cause) if cause.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            other => other.map_err(|cause| self.failed(&cause)),
        }
    }

    fn link(&mut self, path: &[CString], name: &CStr, target: &[u8]) -> Outcome<()> {
        let target_path = self.names(target)?;
        let Some((target_name, target_parents)) = target_path.split_last() else {
            return Err(invalid(format!(
                "{} is a hard link to the top directory.",
                self.current
            )));
        };
        self.walk(target_parents, false)?;
        let status = self
            .here()
            .status(target_name)
            .map_err(|cause| self.failed(&cause))?;
        if kind(&status) != libc::S_IFREG {
            return Err(invalid(format!(
                "{} is a hard link to something that is not a file of the tree.",
                self.current
            )));
        }
        // The way to the target may be another one, so its directory is opened once more before the walk goes on.
        let source = self.here().reopen().map_err(|cause| self.failed(&cause))?;
        let parents = path.split_last().map_or(&[][..], |(_, parents)| parents);
        self.walk(parents, true)?;
        match source.link(target_name, self.here(), name) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                let there = self.here().status(name).map_err(|cause| self.failed(&cause))?;
                if (there.st_dev, there.st_ino) == (status.st_dev, status.st_ino) {
                    return Ok(());
                }
                self.clear(name)?;
                source
                    .link(target_name, self.here(), name)
                    .map_err(|cause| self.failed(&cause))
            }
            other => other.map_err(|cause| self.failed(&cause)),
        }
    }

    fn symlink(&self, name: &CStr, target: &[u8]) -> Outcome<()> {
        let target = CString::new(target)
            .map_err(|_| invalid(format!("{} has a NUL byte in its link.", self.current)))?;
        match self.here().make_link(name, &target) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                self.clear(name)?;
                self.here()
                    .make_link(name, &target)
                    .map_err(|cause| self.failed(&cause))
            }
            other => other.map_err(|cause| self.failed(&cause)),
        }
    }

    /// The names on a path from the top; empty for the top itself.
    fn names(&self, path: &[u8]) -> Outcome<Vec<CString>> {
        if path.starts_with(b"/") {
            return Err(invalid(format!("{} is or names an absolute path.", self.current)));
        }
        let mut names = Vec::new();
        for name in path.split(|byte| *byte == b'/') {
            match name {
                b"" | b"." => {}
                b".." => return Err(invalid(format!("{} leads upwards with `..`.", self.current))),
                name if name.len() > NAME_MAX_BYTES => {
                    return Err(invalid(format!(
                        "{} has a name longer than {NAME_MAX_BYTES} bytes.",
                        self.current
                    )));
                }
                name => {
                    let name = CString::new(name)
                        .map_err(|_| invalid(format!("{} has a NUL byte in its name.", self.current)))?;
                    names.push(name);
                }
            }
        }
        Ok(names)
    }

    fn failed(&self, cause: &io::Error) -> GuestError {
        GuestError::from_file_error(cause, &self.current)
    }
}

impl Sink for Unpacker {
    fn begin(&mut self, entry: &Entry) -> Outcome<()> {
        self.current = shown(Path::new(super::directory::os_str(&entry.path)));
        if entry.path.is_empty() {
            return Err(invalid("An entry of the archive has no name."));
        }
        let path = self.names(&entry.path)?;
        let Some((name, parents)) = path.split_last() else {
            let top = entry.kind == Kind::Directory;
            return if top {
                Ok(())
            } else {
                Err(invalid("The top of the archive is not a directory."))
            };
        };
        match &entry.kind {
            Kind::Directory => self.directory(&path, entry),
            Kind::HardLink { target } => self.link(&path, name, target),
            Kind::File => {
                self.walk(parents, true)?;
                self.regular(name, entry)
            }
            Kind::Symlink { target } => {
                self.walk(parents, true)?;
                self.symlink(name, target)
            }
        }
    }

    fn data(&mut self, bytes: &[u8]) -> Outcome<()> {
        match self.file.as_mut() {
            Some(open) => open
                .file
                .write_all(bytes)
                .map_err(|cause| GuestError::from_file_error(&cause, &self.current)),
            None => Ok(()),
        }
    }

    fn end(&mut self) -> Outcome<()> {
        if let Some(open) = self.file.take() {
            super::directory::set_file_modified(&open.file, open.modified)
                .map_err(|cause| self.failed(&cause))?;
        }
        Ok(())
    }
}

impl Drop for Unpacker {
    /// A file that did not arrive whole does not stay.
    fn drop(&mut self) {
        if let Some(open) = self.file.take() {
            let _ = self.at(open.depth).remove_file(&open.name);
        }
    }
}

fn invalid(detail: impl Into<String>) -> GuestError {
    GuestError::new(ErrorCode::ArchiveInvalid, detail)
}
