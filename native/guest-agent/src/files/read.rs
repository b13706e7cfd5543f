//! Downloads: regular files only, ranges, versions, a steady pace.
//!
//! Nothing that could wait for ever is opened: what is not a regular file is refused before the open, and the open
//! itself does not block. Files without a size (`/proc`) are read whole first, bounded in bytes and time. A stored
//! file is sent with its length; if it shrinks meanwhile the stream is reset, never ended early.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::directory::{Status, kind, status_at, status_of};
use super::path::shown;
use crate::errors::{ErrorCode, GuestError, Outcome};
use crate::http::body::BodySender;
use crate::limits::{FILE_CHUNK_BYTES, SIZELESS_FILE_MAX_BYTES, SIZELESS_FILE_TIMEOUT};

/// An open file, and its bytes where it has no size.
#[derive(Debug)]
pub struct Readable {
    pub file: File,
    pub status: Status,
    pub whole: Option<Bytes>,
}

impl Readable {
    pub fn size(&self) -> u64 {
        match &self.whole {
            Some(bytes) => bytes.len() as u64,
            None => u64::try_from(self.status.st_size).unwrap_or(0),
        }
    }
}

pub fn open(path: &Path) -> Outcome<Readable> {
    let failed = |cause: std::io::Error| GuestError::from_file_error(&cause, &shown(path));
    only_regular(&status_at(path, true).map_err(failed)?, path)?;
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC)
        .open(path)
        .map_err(failed)?;
    let status = status_of(&file).map_err(failed)?;
    only_regular(&status, path)?;
    let whole = if status.st_size == 0 {
        Some(read_sizeless(&file, path)?)
    } else {
        None
    };
    Ok(Readable { file, status, whole })
}

pub fn only_regular(status: &Status, path: &Path) -> Outcome<()> {
    match kind(status) {
        libc::S_IFREG => Ok(()),
        libc::S_IFDIR => Err(GuestError::from_file_errno(libc::EISDIR, &shown(path))),
        _ => Err(GuestError::from_file_errno(libc::ENXIO, &shown(path))),
    }
}

fn read_sizeless(file: &File, path: &Path) -> Outcome<Bytes> {
    let endless = || {
        GuestError::new(
            ErrorCode::NotARegularFile,
            format!(
                "{} has no size and does not end; read it with a program instead.",
                shown(path)
            ),
        )
    };
    let deadline = Instant::now() + SIZELESS_FILE_TIMEOUT;
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 16 << 10];
    loop {
        if Instant::now() > deadline || bytes.len() > SIZELESS_FILE_MAX_BYTES {
            return Err(endless());
        }
        // SAFETY: pointer and length are those of a live buffer.
        let got = unsafe { libc::read(file.as_raw_fd(), chunk.as_mut_ptr().cast(), chunk.len()) };
        match usize::try_from(got) {
            Ok(0) => return Ok(Bytes::from(bytes)),
            Ok(count) => bytes.extend_from_slice(chunk.get(..count).unwrap_or_default()),
            Err(_) => {
                let cause = std::io::Error::last_os_error();
                match cause.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN) => return Err(endless()),
                    // A window into something else, as `/proc/PID/mem`: the kernel refuses the place, not the reader.
                    Some(libc::EIO | libc::EINVAL | libc::EFAULT | libc::ESRCH | libc::EOPNOTSUPP) => {
                        return Err(GuestError::from_file_errno(libc::ENXIO, &shown(path)));
                    }
                    _ => return Err(GuestError::from_file_error(&cause, &shown(path))),
                }
            }
        }
    }
}

/// Sends `length` bytes from `from` on.
pub async fn stream(readable: Readable, from: u64, length: u64, sender: BodySender) {
    if let Some(whole) = readable.whole {
        let start = usize::try_from(from).unwrap_or(usize::MAX).min(whole.len());
        let end = start
            .saturating_add(usize::try_from(length).unwrap_or(usize::MAX))
            .min(whole.len());
        if sender.send(whole.slice(start..end)).await.is_ok() {
            sender.finish().await;
        }
        return;
    }
    let file = Arc::new(readable.file);
    let end = from.saturating_add(length);
    let mut at = from;
    while at < end {
        let wanted = usize::try_from(end - at)
            .unwrap_or(usize::MAX)
            .min(FILE_CHUNK_BYTES);
        let file = Arc::clone(&file);
        let read = tokio::task::spawn_blocking(move || read_piece(&file, at, wanted));
        match read.await {
            Ok(Ok(chunk)) if !chunk.is_empty() => {
                at += chunk.len() as u64;
                if sender.send(chunk).await.is_err() {
                    return;
                }
            }
            _ => return sender.abort().await,
        }
    }
    sender.finish().await;
}

/// Up to `wanted` bytes from `at` on, into memory that is not cleared first.
fn read_piece(file: &File, at: u64, wanted: usize) -> std::io::Result<Bytes> {
    let at = libc::off64_t::try_from(at).map_err(std::io::Error::other)?;
    let mut chunk: Vec<u8> = Vec::with_capacity(wanted);
    // SAFETY: the pointer is to at least `wanted` bytes of the vector's own memory.
    let got = unsafe { libc::pread64(file.as_raw_fd(), chunk.as_mut_ptr().cast(), wanted, at) };
    let count = usize::try_from(got).map_err(|_| std::io::Error::last_os_error())?;
    // SAFETY: the call has filled so many bytes, which are at most `wanted`.
    unsafe { chunk.set_len(count) };
    Ok(Bytes::from(chunk))
}
