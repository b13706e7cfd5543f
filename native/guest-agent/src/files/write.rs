//! Uploads: a temporary file beside the target, then one rename.
//!
//! The target is what the path means to the user: the last link is followed, so writing through a link changes the
//! file behind it, as an editor's user expects. Its directory is opened once, and the temporary file and the rename
//! go through that descriptor. Whoever reads meanwhile sees the old file or the new one; an upload that is cut off,
//! or fails, leaves neither a trace nor a changed target. Writing in place was rejected for that reason.

use std::ffi::{CStr, CString, OsStr};
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Serialize;
use tokio::task::JoinHandle;

use super::directory::{Directory, Status, kind, permissions, status_of};
use super::etag;
use super::mkdir;
use super::path::{GuestPath, shown};
use super::preconditions::Preconditions;
use crate::blocking::{finished, run_blocking};
use crate::errors::{ErrorCode, GuestError, Outcome};
use crate::limits::UPLOAD_PIECE_BYTES;
use crate::random;
use crate::sync::LockAnyway;

const NEW_FILE_MODE: libc::mode_t = 0o644;
const LINKS_FOLLOWED_MAX: u32 = 40;

#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    pub mode: Option<libc::mode_t>,
    pub parents: bool,
    pub preconditions: Preconditions,
}

#[derive(Debug, Serialize)]
pub struct Written {
    pub size: u64,
    pub etag: String,
    #[serde(skip)]
    pub created: bool,
}

/// A place to write to, not yet visible; gone when dropped before it was put in place.
#[derive(Debug)]
pub struct Upload {
    target: PathBuf,
    directory: Directory,
    name: CString,
    temporary: CString,
    file: File,
    options: WriteOptions,
    placed: Mutex<bool>,
}

impl Upload {
    /// As the user: finds the target and makes the temporary file.
    pub fn begin(path: &GuestPath, options: WriteOptions) -> Outcome<Self> {
        let (directory, name, target) = locate(path, options.parents)?;
        let failed = |cause: io::Error| GuestError::from_file_error(&cause, &shown(&target));
        let existing = existing(&directory, &name).map_err(failed)?;
        if let Some(status) = &existing {
            super::read::only_regular(status, &target)?;
        }
        options.preconditions.check(existing.as_ref())?;
        let temporary = temporary_name()?;
        let file = directory
            .open_file(&temporary, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL, 0o600)
            .map_err(failed)?;
        Ok(Self {
            target,
            directory,
            name,
            temporary,
            file,
            options,
            placed: Mutex::new(false),
        })
    }

    /// Writes a piece; its memory, emptied, for the next one.
    fn take(&self, mut piece: Vec<u8>) -> Outcome<Vec<u8>> {
        (&self.file)
            .write_all(&piece)
            .map_err(|cause| self.failed(&cause))?;
        piece.clear();
        Ok(piece)
    }

    /// As the user: mode, owner, rename.
    pub fn place(&self) -> Outcome<Written> {
        let existing = existing(&self.directory, &self.name).map_err(|cause| self.failed(&cause))?;
        if let Some(status) = &existing {
            super::read::only_regular(status, &self.target)?;
        }
        self.options.preconditions.check(existing.as_ref())?;
        self.keep_owner(existing.as_ref());
        let mode = self
            .options
            .mode
            .or(existing.as_ref().map(permissions))
            .unwrap_or(NEW_FILE_MODE);
        self.file
            .set_permissions(Permissions::from_mode(mode))
            .map_err(|cause| self.failed(&cause))?;
        let replace = !self.options.preconditions.must_be_new();
        {
            // Held over the rename, so that a drop elsewhere cannot remove what was just put in place.
            let mut placed = self.placed.locked();
            self.directory
                .rename(&self.temporary, &self.directory, &self.name, replace)
                .map_err(|cause| match cause.raw_os_error() {
                    Some(libc::EEXIST) if !replace => GuestError::new(
                        ErrorCode::PreconditionFailed,
                        "The file exists by now; read it and decide anew.",
                    ),
                    _ => self.failed(&cause),
                })?;
            *placed = true;
        }
        let status = status_of(&self.file).map_err(|cause| self.failed(&cause))?;
        Ok(Written {
            size: u64::try_from(status.st_size).unwrap_or(0),
            etag: etag::of(&status),
            created: existing.is_none(),
        })
    }

    /// A file that is replaced stays its owner's, where the writer may see to it.
    fn keep_owner(&self, existing: Option<&Status>) {
        let Some(before) = existing else { return };
        let Ok(now) = status_of(&self.file) else { return };
        if (before.st_uid, before.st_gid) != (now.st_uid, now.st_gid) {
            // An ordinary user may not; then the file is theirs, as with any editor that renames.
            let _ = std::os::unix::fs::fchown(&self.file, Some(before.st_uid), Some(before.st_gid));
        }
    }

    fn failed(&self, cause: &io::Error) -> GuestError {
        GuestError::from_file_error(cause, &shown(&self.target))
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if !*self.placed.locked() {
            // Nothing to do where even this fails.
            let _ = self.directory.remove_file(&self.temporary);
        }
    }
}

/// Takes the whole body into the upload: one piece is written while the next one comes.
pub async fn fill(upload: &Arc<Upload>, mut body: Incoming, announced: Option<u64>) -> Outcome<()> {
    let mut gathered = Vec::new();
    let mut writing: Option<JoinHandle<Outcome<Vec<u8>>>> = None;
    let mut total: u64 = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|_| GuestError::invalid("The body ended early; nothing was written. Send it again."))?;
        let Ok(data) = frame.into_data() else { continue };
        total += data.len() as u64;
        gathered.extend_from_slice(&data);
        if gathered.len() >= UPLOAD_PIECE_BYTES {
            let spare = written(writing.take()).await?;
            let piece = std::mem::replace(&mut gathered, spare);
            let upload = Arc::clone(upload);
            writing = Some(tokio::task::spawn_blocking(move || upload.take(piece)));
        }
    }
    written(writing.take()).await?;
    if announced.is_some_and(|announced| announced != total) {
        return Err(GuestError::invalid(
            "The body is not as long as content-length says; nothing was written.",
        ));
    }
    if gathered.is_empty() {
        return Ok(());
    }
    let upload = Arc::clone(upload);
    run_blocking(move || upload.take(gathered)).await.map(drop)
}

/// Waits for the piece before, and gives its memory back.
async fn written(writing: Option<JoinHandle<Outcome<Vec<u8>>>>) -> Outcome<Vec<u8>> {
    match writing {
        None => Ok(Vec::new()),
        Some(writing) => finished(writing).await,
    }
}

/// The directory, name and full path that writing to `path` ends up at, links at the end followed.
fn locate(path: &GuestPath, parents: bool) -> Outcome<(Directory, CString, PathBuf)> {
    let mut target = path.clone();
    for _ in 0..LINKS_FOLLOWED_MAX {
        let (parent, name) = target.split()?;
        let directory = match Directory::locate(&parent) {
            Err(cause) if parents && cause.raw_os_error() == Some(libc::ENOENT) => {
                mkdir::make_all(&parent, mkdir::DIRECTORY_MODE)?;
                Directory::locate(&parent)
            }
            other => other,
        }
        .map_err(|cause| GuestError::from_file_error(&cause, &shown(&parent)))?;
        match directory.read_link(&name) {
            Ok(link) => target = behind(&parent, &link)?,
            Err(_) => return Ok((directory, name, target.as_path().to_owned())),
        }
    }
    Err(GuestError::from_file_errno(libc::ELOOP, &path.shown()))
}

fn behind(parent: &Path, link: &CStr) -> Outcome<GuestPath> {
    // Joining takes an absolute link as it is.
    let target = parent.join(OsStr::from_bytes(link.to_bytes()));
    GuestPath::new(target.as_os_str().as_bytes())
}

fn existing(directory: &Directory, name: &CStr) -> io::Result<Option<Status>> {
    match directory.status(name) {
        // A link that appeared since `locate` is replaced, not followed.
        Ok(status) if kind(&status) == libc::S_IFLNK => Ok(None),
        Ok(status) => Ok(Some(status)),
        Err(cause) if cause.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(cause) => Err(cause),
    }
}

pub fn temporary_name() -> Outcome<CString> {
    let id = random::hex_id()
        .map_err(|cause| GuestError::internal(format!("No randomness for a name: {cause}.")))?;
    CString::new(format!(".sandglass-{id}")).map_err(|_| GuestError::internal("A name held a NUL byte."))
}
