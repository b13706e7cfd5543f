//! Watches: what changes under a path, as it happens.
//!
//! inotify watches one directory at a time, so a recursive watch adds each directory it meets and keeps the path of
//! each in step when directories move. The kernel's queue is the only buffer: a slow reader stops the reading, and if
//! the queue runs over, the reader is told `overflow` and lists anew. A directory that appears is looked through,
//! since files may have come before its watch did; such files may be told twice, never zero times.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::directory::{Directory, c_path, kind, name_of, status_at};
use super::info::Name;
use super::path::shown;
use crate::clock::now_ms;
use crate::errors::{ErrorCode, GuestError, Outcome};
use crate::limits::{TREE_DEPTH_MAX, WATCH_DIRECTORIES_MAX};

const MASK: u32 = libc::IN_CREATE
    | libc::IN_MODIFY
    | libc::IN_ATTRIB
    | libc::IN_DELETE
    | libc::IN_MOVED_FROM
    | libc::IN_MOVED_TO
    | libc::IN_DELETE_SELF
    | libc::IN_MOVE_SELF
    | libc::IN_DONT_FOLLOW;
const HEADER_BYTES: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WatchEvent {
    Ready,
    Created(Place),
    Modified(Place),
    Deleted(Place),
    Moved {
        #[serde(flatten)]
        from: Place,
        to: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        to_b64: Option<String>,
    },
    Overflow {
        at_ms: u64,
    },
    Heartbeat,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_b64: Option<String>,
    at_ms: u64,
}

impl Place {
    fn of(path: &Path) -> Self {
        let name = Name::of(path.as_os_str());
        Self {
            path: name.text,
            path_b64: name.encoded,
            at_ms: now_ms(),
        }
    }

    fn is(&self, other: &Self) -> bool {
        self.path == other.path && self.path_b64 == other.path_b64
    }
}

/// One event as the kernel gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawEvent {
    watch: i32,
    mask: u32,
    cookie: u32,
    name: Vec<u8>,
}

/// The first half of a move, until its second half comes.
#[derive(Debug)]
struct Leaving {
    cookie: u32,
    path: PathBuf,
    is_directory: bool,
}

#[derive(Debug)]
pub struct Watcher {
    fd: OwnedFd,
    root: PathBuf,
    recursive: bool,
    paths: HashMap<i32, PathBuf>,
    leaving: Option<Leaving>,
    /// The watched path itself is gone.
    pub ended: bool,
}

impl Watcher {
    /// As the user: watches `path`, which may be a file.
    pub fn open(path: &Path, recursive: bool) -> Outcome<Self> {
        let failed = |cause: io::Error| GuestError::from_file_error(&cause, &shown(path));
        // The last link is followed once, here; below the path none is.
        let status = status_at(path, true).map_err(failed)?;
        let real = std::fs::canonicalize(path).map_err(failed)?;
        // SAFETY: a plain call; the descriptor has no other owner.
        let fd = unsafe {
            let fd = libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC);
            if fd < 0 {
                return Err(failed(io::Error::last_os_error()));
            }
            OwnedFd::from_raw_fd(fd)
        };
        let mut watcher = Self {
            fd,
            root: path.to_owned(),
            recursive,
            paths: HashMap::new(),
            leaving: None,
            ended: false,
        };
        watcher.add(&real, path)?;
        if recursive && kind(&status) == libc::S_IFDIR {
            let top = Directory::open(&real).map_err(failed)?;
            watcher.descend(&top, path, 0, &mut |_| {})?;
        }
        Ok(watcher)
    }

    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Turns a buffer of kernel events into what clients are told.
    pub fn take(&mut self, buffer: &[u8]) -> Outcome<Vec<WatchEvent>> {
        let mut events = Vec::new();
        for raw in decode(buffer) {
            self.event(&raw, &mut events)?;
        }
        Ok(events)
    }

    /// A move whose second half did not come led out of what is watched.
    pub fn flush(&mut self) -> Option<WatchEvent> {
        let leaving = self.leaving.take()?;
        if leaving.is_directory {
            self.forget_below(&leaving.path);
        }
        Some(WatchEvent::Deleted(Place::of(&leaving.path)))
    }

    pub fn is_waiting(&self) -> bool {
        self.leaving.is_some()
    }

    fn event(&mut self, raw: &RawEvent, events: &mut Vec<WatchEvent>) -> Outcome<()> {
        let has = |bit: u32| raw.mask & bit != 0;
        if has(libc::IN_Q_OVERFLOW) {
            events.push(WatchEvent::Overflow { at_ms: now_ms() });
            return Ok(());
        }
        if has(libc::IN_IGNORED) {
            self.paths.remove(&raw.watch);
            return Ok(());
        }
        let Some(directory) = self.paths.get(&raw.watch).cloned() else {
            return Ok(());
        };
        if has(libc::IN_DELETE_SELF | libc::IN_MOVE_SELF) {
            if directory == self.root {
                self.ended = true;
                events.push(WatchEvent::Deleted(Place::of(&directory)));
            }
            return Ok(());
        }
        let path = if raw.name.is_empty() {
            directory
        } else {
            directory.join(OsStr::from_bytes(&raw.name))
        };
        let is_directory = has(libc::IN_ISDIR);
        let pairs = has(libc::IN_MOVED_TO)
            && self
                .leaving
                .as_ref()
                .is_some_and(|leaving| leaving.cookie == raw.cookie);
        if !pairs {
            events.extend(self.flush());
        }
        if has(libc::IN_MOVED_FROM) {
            self.leaving = Some(Leaving {
                cookie: raw.cookie,
                path,
                is_directory,
            });
        } else if has(libc::IN_MOVED_TO) {
            self.arrived(&path, is_directory, events)?;
        } else if has(libc::IN_CREATE) {
            self.created(&path, is_directory, events)?;
        } else if has(libc::IN_DELETE) {
            events.push(WatchEvent::Deleted(Place::of(&path)));
        } else if has(libc::IN_MODIFY | libc::IN_ATTRIB) {
            let place = Place::of(&path);
            // A burst of writes is one change to whoever reads the burst.
            if !matches!(events.last(), Some(WatchEvent::Modified(last)) if last.is(&place)) {
                events.push(WatchEvent::Modified(place));
            }
        }
        Ok(())
    }

    fn arrived(&mut self, path: &Path, is_directory: bool, events: &mut Vec<WatchEvent>) -> Outcome<()> {
        let Some(leaving) = self.leaving.take() else {
            return self.created(path, is_directory, events);
        };
        if is_directory {
            for watched in self.paths.values_mut() {
                if let Ok(below) = watched.strip_prefix(&leaving.path) {
                    *watched = if below.as_os_str().is_empty() {
                        path.to_owned()
                    } else {
                        path.join(below)
                    };
                }
            }
        }
        let to = Name::of(path.as_os_str());
        events.push(WatchEvent::Moved {
            from: Place::of(&leaving.path),
            to: to.text,
            to_b64: to.encoded,
        });
        Ok(())
    }

    fn created(&mut self, path: &Path, is_directory: bool, events: &mut Vec<WatchEvent>) -> Outcome<()> {
        events.push(WatchEvent::Created(Place::of(path)));
        if !(is_directory && self.recursive) {
            return Ok(());
        }
        if self.add(path, path)? == Added::Gone {
            return Ok(());
        }
        let Ok(directory) = Directory::open(path) else {
            return Ok(());
        };
        self.descend(&directory, path, 0, &mut |found| {
            events.push(WatchEvent::Created(Place::of(found)));
        })
    }

    /// Watches every directory below, telling `found` of every entry. One that goes away meanwhile is left out.
    fn descend(
        &mut self,
        directory: &Directory,
        path: &Path,
        depth: usize,
        found: &mut dyn FnMut(&Path),
    ) -> Outcome<()> {
        if depth > TREE_DEPTH_MAX {
            return Err(too_many());
        }
        let Ok(entries) = directory.entries() else {
            return Ok(());
        };
        for entry in entries.flatten() {
            let full = path.join(name_of(&entry));
            found(&full);
            let Some(child) = child_directory(directory, &entry) else {
                continue;
            };
            if self.add(&full, &full)? == Added::Watched {
                self.descend(&child, &full, depth + 1, found)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, real: &Path, path: &Path) -> Outcome<Added> {
        let failed = |cause: io::Error| GuestError::from_file_error(&cause, &shown(path));
        if self.paths.len() >= WATCH_DIRECTORIES_MAX {
            return Err(too_many());
        }
        let real = c_path(real).map_err(failed)?;
        // SAFETY: a plain call with a live string.
        let watch = unsafe { libc::inotify_add_watch(self.fd.as_raw_fd(), real.as_ptr(), MASK) };
        if watch >= 0 {
            self.paths.insert(watch, path.to_owned());
            return Ok(Added::Watched);
        }
        let cause = io::Error::last_os_error();
        match cause.raw_os_error() {
            Some(libc::ENOSPC) => Err(too_many()),
            // What came and went, or may not be looked into, has nothing to tell.
            Some(libc::ENOENT | libc::EACCES | libc::ENOTDIR) if !self.paths.is_empty() => Ok(Added::Gone),
            _ => Err(failed(cause)),
        }
    }

    fn forget_below(&mut self, path: &Path) {
        let gone: Vec<i32> = self
            .paths
            .iter()
            .filter(|(_, watched)| watched.starts_with(path))
            .map(|(watch, _)| *watch)
            .collect();
        for watch in gone {
            self.paths.remove(&watch);
            // SAFETY: a plain call; a watch that is gone already is an error without consequence.
            unsafe {
                libc::inotify_rm_watch(self.fd.as_raw_fd(), watch);
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Added {
    Watched,
    Gone,
}

fn decode(mut buffer: &[u8]) -> Vec<RawEvent> {
    let mut events = Vec::new();
    while let Some((header, rest)) = buffer.split_first_chunk::<HEADER_BYTES>() {
        let word = |at: usize| {
            header
                .get(at..)
                .and_then(|bytes| bytes.first_chunk::<4>())
                .map_or(0, |bytes| u32::from_ne_bytes(*bytes))
        };
        let length = word(12) as usize;
        let Some((name, next)) = rest.split_at_checked(length) else {
            break;
        };
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        events.push(RawEvent {
            watch: word(0).cast_signed(),
            mask: word(4),
            cookie: word(8),
            name: name.get(..end).unwrap_or_default().to_vec(),
        });
        buffer = next;
    }
    events
}

fn child_directory(directory: &Directory, entry: &CStr) -> Option<Directory> {
    let status = directory.status(entry).ok()?;
    (kind(&status) == libc::S_IFDIR).then(|| directory.open_child(entry).ok())?
}

fn too_many() -> GuestError {
    GuestError::new(
        ErrorCode::LimitExceeded,
        format!("One watch covers at most {WATCH_DIRECTORIES_MAX} directories; watch parts of the tree."),
    )
}
