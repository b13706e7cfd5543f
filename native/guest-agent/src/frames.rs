//! The frame stream of exec and output: `[channel u8][length u32 BE][payload]`.
//!
//! Offsets travel with the bytes, so a reader that reconnects says where it stopped and can tell a gap from a
//! repeat. Length-prefixed binary rather than lines or base64: output is bytes, and NUL, CR and broken UTF-8
//! must survive. A stream without `exit`, `end` or `error` at its end is lost contact.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;

use crate::limits::FRAME_PAYLOAD_MAX_BYTES;

pub const CHANNEL_STDOUT: u8 = 1;
pub const CHANNEL_STDERR: u8 = 2;
pub const CHANNEL_STATUS: u8 = 3;

pub const HEADER_BYTES: usize = 5;
pub const OFFSET_BYTES: usize = 8;
/// Output bytes in one frame.
pub const DATA_MAX_BYTES: usize = FRAME_PAYLOAD_MAX_BYTES - OFFSET_BYTES;

/// A frame as a reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    Output { channel: u8, offset: u64, bytes: Bytes },
    Status(Bytes),
}

/// What is wrong with bytes that are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    UnknownChannel,
    TooLong,
    MissingOffset,
}

/// Appends one output frame. `bytes` holds at most [`DATA_MAX_BYTES`]; what is over is left out, and the count
/// of bytes taken is returned.
pub fn put_output(buffer: &mut BytesMut, channel: u8, offset: u64, bytes: &[u8]) -> usize {
    let taken = bytes.get(..DATA_MAX_BYTES).unwrap_or(bytes);
    put_header(buffer, channel, OFFSET_BYTES + taken.len());
    buffer.put_u64(offset);
    buffer.put_slice(taken);
    taken.len()
}

/// Appends one status frame. `false` when the message does not fit a frame.
#[must_use]
pub fn put_status<T: Serialize>(buffer: &mut BytesMut, status: &T) -> bool {
    match serde_json::to_vec(status) {
        Ok(json) if json.len() <= FRAME_PAYLOAD_MAX_BYTES => {
            put_header(buffer, CHANNEL_STATUS, json.len());
            buffer.put_slice(&json);
            true
        }
        _ => false,
    }
}

fn put_header(buffer: &mut BytesMut, channel: u8, length: usize) {
    buffer.put_u8(channel);
    // Both callers keep the length at or below FRAME_PAYLOAD_MAX_BYTES.
    buffer.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
}

/// Takes the first whole frame off `buffer`; `Ok(None)` when more bytes are needed.
pub fn take(buffer: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
    let Some((&[channel, a, b, c, d], rest)) = buffer.split_first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    if !matches!(channel, CHANNEL_STDOUT | CHANNEL_STDERR | CHANNEL_STATUS) {
        return Err(FrameError::UnknownChannel);
    }
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if length > FRAME_PAYLOAD_MAX_BYTES {
        return Err(FrameError::TooLong);
    }
    if channel != CHANNEL_STATUS && length < OFFSET_BYTES {
        return Err(FrameError::MissingOffset);
    }
    if rest.len() < length {
        return Ok(None);
    }
    let mut payload = buffer
        .split_to(HEADER_BYTES + length)
        .split_off(HEADER_BYTES)
        .freeze();
    if channel == CHANNEL_STATUS {
        return Ok(Some(Frame::Status(payload)));
    }
    let head = payload.split_to(OFFSET_BYTES);
    let offset = head
        .first_chunk()
        .copied()
        .map(u64::from_be_bytes)
        .ok_or(FrameError::MissingOffset)?;
    Ok(Some(Frame::Output {
        channel,
        offset,
        bytes: payload,
    }))
}
