//! Reads a tar stream that is fed to it in pieces of any size.
//!
//! A state machine rather than a blocking reader, so that a slow client holds no thread. It is strict: a header with
//! a wrong sum, an unknown kind of entry, a missing end or bytes after it are errors, because each of them would mean
//! that something was silently left out.

use super::header::{self, BLOCK_BYTES, Block, Header};
use super::pax::Pax;
use crate::errors::{ErrorCode, GuestError, Outcome};
use crate::limits::{
    ARCHIVE_ENTRIES_MAX, ARCHIVE_EXTENDED_HEADER_MAX_BYTES, ARCHIVE_TOTAL_MAX_BYTES, PATH_MAX_BYTES,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
    Symlink { target: Vec<u8> },
    HardLink { target: Vec<u8> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub path: Vec<u8>,
    pub kind: Kind,
    pub mode: u32,
    pub modified: i64,
    pub size: u64,
}

/// What takes the entries.
pub trait Sink {
    fn begin(&mut self, entry: &Entry) -> Outcome<()>;
    /// Bytes of the file that was begun last.
    fn data(&mut self, bytes: &[u8]) -> Outcome<()>;
    /// The file that was begun last is whole.
    fn end(&mut self) -> Outcome<()>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extension {
    LongName,
    LongLink,
    Local,
    Global,
}

#[derive(Debug)]
enum State {
    Header,
    /// `size` bytes count, what is gathered beyond is padding.
    Extension {
        kind: Extension,
        size: u64,
        bytes: Vec<u8>,
    },
    Data {
        left: u64,
        padding: u64,
    },
    Padding {
        left: u64,
    },
    Ended,
}

/// How much was read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    pub entries: u64,
    pub bytes: u64,
}

#[derive(Debug)]
pub struct TarReader {
    state: State,
    /// Part of a block that came so far.
    block: Vec<u8>,
    long_name: Option<Vec<u8>>,
    long_link: Option<Vec<u8>>,
    local: Pax,
    global: Pax,
    totals: Totals,
}

impl Default for TarReader {
    fn default() -> Self {
        Self {
            state: State::Header,
            block: Vec::with_capacity(BLOCK_BYTES),
            long_name: None,
            long_link: None,
            local: Pax::default(),
            global: Pax::default(),
            totals: Totals::default(),
        }
    }
}

impl TarReader {
    pub fn feed(&mut self, mut bytes: &[u8], sink: &mut impl Sink) -> Outcome<()> {
        while !bytes.is_empty() {
            bytes = match &mut self.state {
                State::Header => {
                    let (taken, rest) = split(bytes, (BLOCK_BYTES - self.block.len()) as u64);
                    self.block.extend_from_slice(taken);
                    if let Ok(block) = Block::try_from(self.block.as_slice()) {
                        self.block.clear();
                        self.header(&block, sink)?;
                    }
                    rest
                }
                State::Extension {
                    size,
                    bytes: gathered,
                    ..
                } => {
                    let (taken, rest) = split(bytes, padded(*size) - gathered.len() as u64);
                    gathered.extend_from_slice(taken);
                    if gathered.len() as u64 == padded(*size) {
                        self.extended()?;
                    }
                    rest
                }
                State::Data { left, padding } => {
                    let (taken, rest) = split(bytes, *left);
                    *left -= taken.len() as u64;
                    let after = (*left == 0).then_some(*padding);
                    sink.data(taken)?;
                    self.totals.bytes += taken.len() as u64;
                    if let Some(padding) = after {
                        sink.end()?;
                        self.state = if padding == 0 {
                            State::Header
                        } else {
                            State::Padding { left: padding }
                        };
                    }
                    rest
                }
                State::Padding { left } => {
                    let (taken, rest) = split(bytes, *left);
                    *left -= taken.len() as u64;
                    if *left == 0 {
                        self.state = State::Header;
                    }
                    rest
                }
                State::Ended => {
                    if bytes.iter().any(|byte| *byte != 0) {
                        return Err(invalid(
                            "The archive goes on after its end; send one archive at a time.",
                        ));
                    }
                    return Ok(());
                }
            };
        }
        Ok(())
    }

    /// To be called at the end of the stream.
    pub fn finish(&self) -> Outcome<Totals> {
        match self.state {
            State::Ended => Ok(self.totals),
            _ => Err(invalid(
                "The archive ends early; send all of it, end marker included.",
            )),
        }
    }

    fn header(&mut self, block: &Block, sink: &mut impl Sink) -> Outcome<()> {
        if header::is_zero(block) {
            if self.long_name.is_some() || self.long_link.is_some() || self.local != Pax::default() {
                return Err(invalid(
                    "The archive ends after an extended header; make it anew.",
                ));
            }
            self.state = State::Ended;
            return Ok(());
        }
        let header = header::decode(block).map_err(|_| {
            invalid("The archive is not a plain or gzip-compressed tar, or is damaged; make it anew.")
        })?;
        match header.kind {
            b'x' => self.extension(Extension::Local, header.size),
            b'g' => self.extension(Extension::Global, header.size),
            b'L' => self.extension(Extension::LongName, header.size),
            b'K' => self.extension(Extension::LongLink, header.size),
            _ => self.entry(header, sink),
        }
    }

    fn extension(&mut self, kind: Extension, size: u64) -> Outcome<()> {
        if size > ARCHIVE_EXTENDED_HEADER_MAX_BYTES {
            return Err(limit(format!(
                "An extended header is longer than {ARCHIVE_EXTENDED_HEADER_MAX_BYTES} bytes."
            )));
        }
        self.state = State::Extension {
            kind,
            size,
            bytes: Vec::new(),
        };
        if size == 0 { self.extended() } else { Ok(()) }
    }

    fn extended(&mut self) -> Outcome<()> {
        let State::Extension {
            kind,
            size,
            mut bytes,
        } = std::mem::replace(&mut self.state, State::Header)
        else {
            return Ok(());
        };
        bytes.truncate(usize::try_from(size).unwrap_or(usize::MAX));
        match kind {
            Extension::LongName => self.long_name = Some(until_nul(bytes)),
            Extension::LongLink => self.long_link = Some(until_nul(bytes)),
            Extension::Local | Extension::Global => {
                let pax = if kind == Extension::Local {
                    &mut self.local
                } else {
                    &mut self.global
                };
                pax.add(&bytes)
                    .ok_or_else(|| invalid("The archive has a malformed extended header; make it anew."))?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, header: Header, sink: &mut impl Sink) -> Outcome<()> {
        let local = std::mem::take(&mut self.local);
        let pick =
            |long: Option<Vec<u8>>, local: Option<Vec<u8>>, global: &Option<Vec<u8>>, plain: Vec<u8>| {
                local.or(long).or_else(|| global.clone()).unwrap_or(plain)
            };
        let path = pick(self.long_name.take(), local.path, &self.global.path, header.name);
        let target = pick(self.long_link.take(), local.link, &self.global.link, header.link);
        let size = local.size.or(self.global.size).unwrap_or(header.size);
        let named = || {
            String::from_utf8_lossy(path.get(..200).unwrap_or(&path))
                .escape_debug()
                .to_string()
        };
        if local.sparse || self.global.sparse {
            return Err(invalid(format!(
                "{} is stored as a sparse file; make the archive without sparse files.",
                named()
            )));
        }
        if path.len() > PATH_MAX_BYTES || target.len() > PATH_MAX_BYTES {
            return Err(limit(format!(
                "{} has a path longer than {PATH_MAX_BYTES} bytes.",
                named()
            )));
        }
        let kind = match header.kind {
            b'0' | b'7' => Kind::File,
            0 if !path.ends_with(b"/") => Kind::File,
            0 | b'5' => Kind::Directory,
            b'1' => Kind::HardLink { target },
            b'2' => Kind::Symlink { target },
            b'3' | b'4' => {
                return Err(invalid(format!(
                    "{} is a device; leave it out of the archive.",
                    named()
                )));
            }
            b'6' => {
                return Err(invalid(format!(
                    "{} is a FIFO; leave it out of the archive.",
                    named()
                )));
            }
            _ => {
                return Err(invalid(format!(
                    "{} is of an unknown kind; make the archive with a plain tar.",
                    named()
                )));
            }
        };
        if kind != Kind::File && size != 0 {
            return Err(invalid(format!(
                "{} has bytes but is no file; make the archive anew.",
                named()
            )));
        }
        self.totals.entries += 1;
        if self.totals.entries > ARCHIVE_ENTRIES_MAX {
            return Err(limit(format!(
                "The archive has more than {ARCHIVE_ENTRIES_MAX} entries; send it in parts."
            )));
        }
        if size > ARCHIVE_TOTAL_MAX_BYTES.saturating_sub(self.totals.bytes) {
            return Err(limit(format!(
                "The archive holds more than {ARCHIVE_TOTAL_MAX_BYTES} bytes; send it in parts."
            )));
        }
        let is_file = kind == Kind::File;
        sink.begin(&Entry {
            path,
            kind,
            mode: header.mode,
            modified: local.modified.unwrap_or(header.modified),
            size,
        })?;
        if is_file && size == 0 {
            sink.end()?;
        }
        self.state = if size == 0 {
            State::Header
        } else {
            State::Data {
                left: size,
                padding: padded(size) - size,
            }
        };
        Ok(())
    }
}

fn split(bytes: &[u8], most: u64) -> (&[u8], &[u8]) {
    bytes.split_at(usize::try_from(most).unwrap_or(usize::MAX).min(bytes.len()))
}

pub fn padded(size: u64) -> u64 {
    size.div_ceil(BLOCK_BYTES as u64) * BLOCK_BYTES as u64
}

fn until_nul(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
        bytes.truncate(end);
    }
    bytes
}

fn invalid(detail: impl Into<String>) -> GuestError {
    GuestError::new(ErrorCode::ArchiveInvalid, detail)
}

fn limit(detail: impl Into<String>) -> GuestError {
    GuestError::new(ErrorCode::ArchiveLimit, detail)
}
