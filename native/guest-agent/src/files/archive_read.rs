//! Packs a directory's contents, or one file, as a tar stream, a chunk at a time.
//!
//! Entries come in the order the file system has them and nothing is gathered first, so memory does not follow the
//! size of the tree. Other file systems (`/proc`, mounts) are named but not entered; sockets, FIFOs and devices have
//! no place in an archive that may be unpacked elsewhere. Both are counted in the `sandglass-skipped` trailer. What
//! cannot be read, or shrinks meanwhile, resets the stream: half an archive is never taken for a whole one.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use super::directory::{Directory, Entries, Status, kind, permissions, status_of};
use super::path::{GuestPath, shown};
use crate::errors::{GuestError, Outcome};
use crate::limits::{ARCHIVE_LINKS_REMEMBERED_MAX, FILE_CHUNK_BYTES, TREE_DEPTH_MAX};
use crate::tar::header::HeaderParts;
use crate::tar::writer;
use crate::users::Accounts;

struct Level {
    directory: Directory,
    entries: Entries,
    /// Of its entries: `a/b/`, empty at the top.
    prefix: Vec<u8>,
}

struct OpenFile {
    file: File,
    size: u64,
    left: u64,
}

pub struct Packer {
    root: PathBuf,
    device: libc::dev_t,
    levels: Vec<Level>,
    file: Option<OpenFile>,
    links: HashMap<(libc::dev_t, libc::ino_t), Vec<u8>>,
    accounts: Arc<Accounts>,
    started: bool,
    /// The one file that is packed, when it is no directory.
    single: Option<(Directory, CString)>,
    pub entries: u64,
    pub skipped: u64,
    ended: bool,
}

impl Packer {
    pub fn open(path: &GuestPath) -> Outcome<Self> {
        let failed = |cause: io::Error| GuestError::from_file_error(&cause, &path.shown());
        let mut packer = Self {
            root: path.as_path().to_owned(),
            device: 0,
            levels: Vec::new(),
            file: None,
            links: HashMap::new(),
            accounts: Accounts::read(),
            started: false,
            single: None,
            entries: 0,
            skipped: 0,
            ended: false,
        };
        match Directory::open(path.as_path()) {
            Ok(directory) => {
                packer.device = directory.own_status().map_err(failed)?.st_dev;
                packer.enter(directory, Vec::new()).map_err(failed)?;
            }
            Err(cause) if cause.raw_os_error() == Some(libc::ENOTDIR) => {
                let real = std::fs::canonicalize(path.as_path()).map_err(failed)?;
                let (parent, name) = GuestPath::new(real.as_os_str().as_encoded_bytes())?.split()?;
                let directory = Directory::locate(&parent).map_err(failed)?;
                super::read::only_regular(&directory.status(&name).map_err(failed)?, path.as_path())?;
                packer.single = Some((directory, name));
            }
            Err(cause) => return Err(failed(cause)),
        }
        Ok(packer)
    }

    /// The next bytes of the archive; empty at its end.
    pub fn next_chunk(&mut self) -> Outcome<Bytes> {
        let mut out = BytesMut::with_capacity(FILE_CHUNK_BYTES + FILE_CHUNK_BYTES / 8);
        while !self.ended && out.len() < FILE_CHUNK_BYTES {
            if let Some(open) = self.file.as_mut() {
                let wanted =
                    (FILE_CHUNK_BYTES - out.len()).min(usize::try_from(open.left).unwrap_or(usize::MAX));
                read_into(&mut out, &mut open.file, wanted)
                    .map_err(|cause| GuestError::from_file_error(&cause, &shown(&self.root)))?;
                open.left -= wanted as u64;
                if open.left == 0 {
                    writer::put_padding(&mut out, open.size);
                    self.file = None;
                }
            } else if !self.started {
                self.started = true;
                self.first(&mut out)?;
            } else {
                self.step(&mut out)?;
            }
        }
        Ok(out.freeze())
    }

    fn first(&mut self, out: &mut BytesMut) -> Outcome<()> {
        if let Some((directory, name)) = self.single.take() {
            return self.entry(out, &directory, &name, name.to_bytes().to_vec());
        }
        let Some(level) = self.levels.last() else {
            return Ok(());
        };
        let status = level
            .directory
            .own_status()
            .map_err(|cause| self.failed(&cause, b""))?;
        self.put(out, b"./", b"", b'5', 0, &status);
        Ok(())
    }

    fn step(&mut self, out: &mut BytesMut) -> Outcome<()> {
        let Some(level) = self.levels.last_mut() else {
            writer::put_end(out);
            self.ended = true;
            return Ok(());
        };
        let prefix = level.prefix.clone();
        let name = match level.entries.next() {
            None => {
                self.levels.pop();
                return Ok(());
            }
            Some(Err(cause)) => return Err(self.failed(&cause, &prefix)),
            Some(Ok(name)) => name,
        };
        let path = [prefix.as_slice(), name.to_bytes()].concat();
        // Taken out and put back below what the entry may have entered, so that `self` is free meanwhile.
        let depth = self.levels.len().saturating_sub(1);
        let Some(level) = self.levels.pop() else {
            return Ok(());
        };
        let result = self.entry(out, &level.directory, &name, path);
        self.levels.insert(depth, level);
        result
    }

    fn entry(
        &mut self,
        out: &mut BytesMut,
        directory: &Directory,
        name: &CStr,
        path: Vec<u8>,
    ) -> Outcome<()> {
        let status = match directory.status(name) {
            Err(cause) if cause.raw_os_error() == Some(libc::ENOENT) => return Ok(()),
            other => other.map_err(|cause| self.failed(&cause, &path))?,
        };
        match kind(&status) {
            libc::S_IFREG => self.regular(out, directory, name, path, &status),
            libc::S_IFLNK => {
                let target = directory
                    .read_link(name)
                    .map_err(|cause| self.failed(&cause, &path))?;
                self.put(out, &path, target.to_bytes(), b'2', 0, &status);
                Ok(())
            }
            libc::S_IFDIR => {
                let prefix = [path.as_slice(), b"/"].concat();
                self.put(out, &prefix, b"", b'5', 0, &status);
                let child = directory
                    .open_child(name)
                    .map_err(|cause| self.failed(&cause, &path))?;
                if child
                    .own_status()
                    .map_err(|cause| self.failed(&cause, &path))?
                    .st_dev
                    != self.device
                {
                    self.skipped += 1;
                    return Ok(());
                }
                self.enter(child, prefix)
                    .map_err(|cause| self.failed(&cause, &path))
            }
            _ => {
                self.skipped += 1;
                Ok(())
            }
        }
    }

    fn regular(
        &mut self,
        out: &mut BytesMut,
        directory: &Directory,
        name: &CStr,
        path: Vec<u8>,
        status: &Status,
    ) -> Outcome<()> {
        let identity = (status.st_dev, status.st_ino);
        if let Some(first) = self.links.get(&identity).cloned() {
            self.put(out, &path, &first, b'1', 0, status);
            return Ok(());
        }
        let file = directory
            .open_file(name, libc::O_RDONLY | libc::O_NONBLOCK, 0)
            .map_err(|cause| self.failed(&cause, &path))?;
        let status = status_of(&file).map_err(|cause| self.failed(&cause, &path))?;
        if kind(&status) != libc::S_IFREG {
            self.skipped += 1;
            return Ok(());
        }
        let size = u64::try_from(status.st_size).unwrap_or(0);
        self.put(out, &path, b"", b'0', size, &status);
        if status.st_nlink > 1 && self.links.len() < ARCHIVE_LINKS_REMEMBERED_MAX {
            self.links.insert(identity, path);
        }
        if size > 0 {
            self.file = Some(OpenFile {
                file,
                size,
                left: size,
            });
        }
        Ok(())
    }

    fn put(
        &mut self,
        out: &mut BytesMut,
        name: &[u8],
        link: &[u8],
        entry_kind: u8,
        size: u64,
        status: &Status,
    ) {
        let parts = HeaderParts {
            name,
            link,
            kind: entry_kind,
            mode: permissions(status),
            uid: status.st_uid,
            gid: status.st_gid,
            user: self.accounts.user_name(status.st_uid).unwrap_or_default(),
            group: self.accounts.group_name(status.st_gid).unwrap_or_default(),
            size,
            modified: status.st_mtime,
        };
        writer::put_header(out, &parts);
        self.entries += 1;
    }

    fn enter(&mut self, directory: Directory, prefix: Vec<u8>) -> io::Result<()> {
        if self.levels.len() >= TREE_DEPTH_MAX {
            return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
        }
        let entries = directory.entries()?;
        self.levels.push(Level {
            directory,
            entries,
            prefix,
        });
        Ok(())
    }

    fn failed(&self, cause: &io::Error, path: &[u8]) -> GuestError {
        let full = self.root.join(OsStr::from_bytes(path));
        GuestError::from_file_error(cause, &shown(&full))
    }
}

/// Exactly `wanted` bytes, or an error: the header has promised them.
fn read_into(out: &mut BytesMut, file: &mut File, wanted: usize) -> io::Result<()> {
    let before = out.len();
    out.put_bytes(0, wanted);
    let space = out.get_mut(before..).unwrap_or_default();
    file.read_exact(space)
}
