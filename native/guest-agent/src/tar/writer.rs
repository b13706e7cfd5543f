//! Writes headers in the GNU flavour: long names in front, raw bytes, big numbers in base 256.
//!
//! PAX was the alternative; it wants UTF-8, and names here are bytes.

use bytes::{BufMut, BytesMut};

use super::header::{self, BLOCK_BYTES, HeaderParts};
use super::reader::padded;

const LONG_NAME: &[u8] = b"././@LongLink";

/// Appends the header, with what must come before it.
pub fn put_header(out: &mut BytesMut, parts: &HeaderParts<'_>) {
    for (kind, text) in [(b'K', parts.link), (b'L', parts.name)] {
        if !header::name_fits(text) {
            put_long(out, kind, text);
        }
    }
    out.put_slice(&header::encode(parts));
}

/// Fills up the last block of a file of `size` bytes.
pub fn put_padding(out: &mut BytesMut, size: u64) {
    out.put_bytes(0, usize::try_from(padded(size) - size).unwrap_or(0));
}

pub fn put_end(out: &mut BytesMut) {
    out.put_bytes(0, 2 * BLOCK_BYTES);
}

fn put_long(out: &mut BytesMut, kind: u8, text: &[u8]) {
    let size = text.len() as u64 + 1;
    let parts = HeaderParts {
        name: LONG_NAME,
        link: b"",
        kind,
        mode: 0o644,
        uid: 0,
        gid: 0,
        user: "",
        group: "",
        size,
        modified: 0,
    };
    out.put_slice(&header::encode(&parts));
    out.put_slice(text);
    out.put_u8(0);
    put_padding(out, size);
}
