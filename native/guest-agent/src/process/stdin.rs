//! Input to a process: numbered bytes, taken with the pace of the reader.
//!
//! `offset` makes a repeat safe: bytes the process has already been given are skipped, a hole is refused. One
//! request writes at a time. A request that is cut off has given exactly the bytes that `accepted` counts.
//!
//! An offset alone cannot tell a repeat from the first bytes of somebody who counted before somebody else wrote. So a
//! request names its `writer`, and bytes are skipped only where that writer gave them: the last stretch that one writer
//! gave is remembered, and an offset before it, or in the stretch of another, is refused. Nothing is written then.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::pty;
use super::record::{Changing, Record, SharedFd, StdinState};
use crate::errors::{ErrorCode, GuestError, Outcome};

pub async fn write_body(
    record: &Arc<Record>,
    mut body: Incoming,
    offset: Option<u64>,
    writer: Option<&str>,
    close: bool,
) -> Outcome<StdinState> {
    let _turn = record.stdin_turn.lock().await;
    let (state, input, own_from) = record.look(|changing| {
        (
            changing.stdin,
            changing.input.clone(),
            changing.given_from(writer),
        )
    });
    let Some(fd) = input else {
        return already_closed(record, state, own_from, offset, body).await;
    };
    let mut skip = already_given(state, own_from, offset)?;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            GuestError::invalid("The body ended early; send it again from the accepted offset.")
        })?;
        let Ok(data) = frame.into_data() else { continue };
        write_fresh(record, &fd, &data, &mut skip, writer).await?;
    }
    if close {
        if record.facts.tty {
            write_all(record, &fd, &[pty::end_of_file(&*fd)]).await?;
        } else {
            record.change(Changing::close_input);
        }
    }
    Ok(record.look(|changing| changing.stdin))
}

/// Bytes at the beginning of a body that are a repeat.
pub(super) fn already_given(state: StdinState, own_from: u64, offset: Option<u64>) -> Outcome<u64> {
    match offset {
        Some(offset) if offset > state.accepted => Err(hole(state.accepted)),
        Some(offset) if offset < own_from => Err(overtaken(state.accepted)),
        Some(offset) => Ok(state.accepted - offset),
        None => Ok(0),
    }
}

/// Writes what is no repeat. `skip` is what is left of the repeat.
pub(super) async fn write_fresh(
    record: &Record,
    fd: &SharedFd,
    data: &[u8],
    skip: &mut u64,
    writer: Option<&str>,
) -> Outcome<()> {
    let skipped = usize::try_from(*skip).unwrap_or(usize::MAX).min(data.len());
    *skip -= skipped as u64;
    let fresh = data.get(skipped..).unwrap_or_default();
    if !fresh.is_empty() {
        record.change(|changing| changing.begin_stretch(writer));
    }
    let written = write_all(record, fd, fresh).await;
    if written.is_err() {
        record.change(Changing::close_input);
    }
    written
}

/// A repeat of bytes that were all accepted before the close is answered as the first time.
async fn already_closed(
    record: &Record,
    state: StdinState,
    own_from: u64,
    offset: Option<u64>,
    body: Incoming,
) -> Outcome<StdinState> {
    let refused = Err(closed(record));
    let Some(offset) = offset.filter(|offset| (own_from..=state.accepted).contains(offset)) else {
        return refused;
    };
    let left = state.accepted - offset;
    let mut length = 0;
    let mut body = body;
    while let Some(Ok(frame)) = body.frame().await {
        length += frame.data_ref().map_or(0, |data| data.len() as u64);
        if length > left {
            return refused;
        }
    }
    if length > 0 || (offset == state.accepted && state.accepted > 0) {
        Ok(state)
    } else {
        refused
    }
}

/// Why nothing can be written.
pub(super) fn closed(record: &Record) -> GuestError {
    let (code, detail) = if record.look(|changing| changing.ended.is_some()) {
        (
            ErrorCode::ProcessExited,
            "The process has ended; its input is gone with it.",
        )
    } else {
        (
            ErrorCode::StdinClosed,
            "The input of this process is closed; start it with stdin true and close it last.",
        )
    };
    GuestError::new(code, detail)
}

async fn write_all(record: &Record, fd: &SharedFd, mut bytes: &[u8]) -> Outcome<()> {
    while !bytes.is_empty() {
        let mut ready = fd
            .writable()
            .await
            .map_err(|cause| GuestError::internal(format!("The input cannot be watched: {cause}.")))?;
        // SAFETY: pointer and length are those of a live slice.
        let wrote = unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
        if let Ok(count) = usize::try_from(wrote) {
            // No await between the write and the count: a cut-off request leaves both true.
            record.change(|changing| changing.stdin.accepted += count as u64);
            bytes = bytes.get(count..).unwrap_or_default();
            continue;
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::EAGAIN) => ready.clear_ready(),
            Some(libc::EINTR) => {}
            _ => {
                return Err(GuestError::new(
                    ErrorCode::StdinClosed,
                    "The process no longer reads its input; send no more.",
                ));
            }
        }
    }
    Ok(())
}

fn hole(accepted: u64) -> GuestError {
    GuestError::new(
        ErrorCode::StdinOffset,
        format!("The input has {accepted} bytes so far; continue from there."),
    )
}

fn overtaken(accepted: u64) -> GuestError {
    GuestError::new(
        ErrorCode::StdinOffset,
        format!(
            "Another client has written to this input since; none of these bytes was written. It has {accepted} bytes \
             so far: attach again to write behind them."
        ),
    )
}
