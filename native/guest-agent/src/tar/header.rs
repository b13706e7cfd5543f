//! One 512-byte header block.

pub const BLOCK_BYTES: usize = 512;
pub type Block = [u8; BLOCK_BYTES];

const NAME: Field = Field(0, 100);
const MODE: Field = Field(100, 8);
const UID: Field = Field(108, 8);
const GID: Field = Field(116, 8);
const SIZE: Field = Field(124, 12);
const MODIFIED: Field = Field(136, 12);
const CHECKSUM: Field = Field(148, 8);
const TYPE: usize = 156;
const LINK: Field = Field(157, 100);
const MAGIC: Field = Field(257, 8);
const USER_NAME: Field = Field(265, 32);
const GROUP_NAME: Field = Field(297, 32);
const PREFIX: Field = Field(345, 155);

const MAGIC_POSIX: &[u8] = b"ustar\0";
const MAGIC_GNU: &[u8] = b"ustar  \0";

#[derive(Clone, Copy)]
struct Field(usize, usize);

/// A header as it stands, before long names and PAX records are applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub name: Vec<u8>,
    pub link: Vec<u8>,
    pub kind: u8,
    pub mode: u32,
    pub size: u64,
    pub modified: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderError {
    Checksum,
    Number,
}

pub fn is_zero(block: &Block) -> bool {
    block.iter().all(|byte| *byte == 0)
}

pub fn decode(block: &Block) -> Result<Header, HeaderError> {
    let stored = number(field(block, CHECKSUM)).ok_or(HeaderError::Checksum)?;
    if stored != i64::from(checksum(block)) {
        return Err(HeaderError::Checksum);
    }
    let mut name = text(field(block, NAME)).to_vec();
    if field(block, MAGIC).starts_with(MAGIC_POSIX) {
        let prefix = text(field(block, PREFIX));
        if !prefix.is_empty() {
            name = [prefix, b"/", &name].concat();
        }
    }
    let mode = number(field(block, MODE)).and_then(|mode| u32::try_from(mode).ok());
    let size = number(field(block, SIZE)).and_then(|size| u64::try_from(size).ok());
    Ok(Header {
        name,
        link: text(field(block, LINK)).to_vec(),
        kind: block.get(TYPE).copied().unwrap_or(0),
        mode: mode.ok_or(HeaderError::Number)?,
        size: size.ok_or(HeaderError::Number)?,
        modified: number(field(block, MODIFIED)).ok_or(HeaderError::Number)?,
    })
}

/// What a header to be written holds. Names longer than their fields are cut; the writer puts them in front.
#[derive(Debug, Clone, Copy)]
pub struct HeaderParts<'a> {
    pub name: &'a [u8],
    pub link: &'a [u8],
    pub kind: u8,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub user: &'a str,
    pub group: &'a str,
    pub size: u64,
    pub modified: i64,
}

pub fn name_fits(name: &[u8]) -> bool {
    name.len() <= NAME.1
}

pub fn encode(parts: &HeaderParts<'_>) -> Block {
    let mut block = [0; BLOCK_BYTES];
    put_text(&mut block, NAME, parts.name);
    put_number(&mut block, MODE, u64::from(parts.mode));
    put_number(&mut block, UID, u64::from(parts.uid));
    put_number(&mut block, GID, u64::from(parts.gid));
    put_number(&mut block, SIZE, parts.size);
    put_number(&mut block, MODIFIED, u64::try_from(parts.modified).unwrap_or(0));
    put_text(&mut block, LINK, parts.link);
    put_text(&mut block, MAGIC, MAGIC_GNU);
    put_short_text(&mut block, USER_NAME, parts.user.as_bytes());
    put_short_text(&mut block, GROUP_NAME, parts.group.as_bytes());
    if let Some(kind) = block.get_mut(TYPE) {
        *kind = parts.kind;
    }
    let sum = format!("{:06o}\0 ", checksum(&block));
    put_text(&mut block, CHECKSUM, sum.as_bytes());
    block
}

/// Sum of all bytes, those of the sum itself counted as spaces.
fn checksum(block: &Block) -> u32 {
    let own = CHECKSUM.0..CHECKSUM.0 + CHECKSUM.1;
    block
        .iter()
        .enumerate()
        .map(|(at, byte)| {
            if own.contains(&at) {
                u32::from(b' ')
            } else {
                u32::from(*byte)
            }
        })
        .sum()
}

fn field(block: &Block, field: Field) -> &[u8] {
    block.get(field.0..field.0 + field.1).unwrap_or_default()
}

fn text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    field.get(..end).unwrap_or_default()
}

/// Octal digits between spaces and NULs, or GNU's base 256 with the top bit set.
fn number(field: &[u8]) -> Option<i64> {
    let (first, rest) = field.split_first()?;
    if first & 0x80 != 0 {
        // Two's complement; the sign bit is the one after the marker.
        let start = if first & 0x40 != 0 {
            -1
        } else {
            i64::from(first & 0x3f)
        };
        return rest.iter().try_fold(start, |value, byte| {
            value.checked_mul(256)?.checked_add(i64::from(*byte))
        });
    }
    let digits = text(field).trim_ascii();
    digits.iter().try_fold(0_i64, |value, byte| {
        let digit = char::from(*byte).to_digit(8)?;
        value.checked_mul(8)?.checked_add(i64::from(digit))
    })
}

fn put_text(block: &mut Block, field: Field, bytes: &[u8]) {
    let space = block.get_mut(field.0..field.0 + field.1).unwrap_or_default();
    for (space, byte) in space.iter_mut().zip(bytes) {
        *space = *byte;
    }
}

/// Leaves room for the NUL that readers expect.
fn put_short_text(block: &mut Block, field: Field, bytes: &[u8]) {
    put_text(block, Field(field.0, field.1 - 1), bytes);
}

fn put_number(block: &mut Block, field: Field, value: u64) {
    let digits = field.1 - 1;
    let octal = format!("{value:0digits$o}");
    if octal.len() <= digits {
        return put_text(block, field, octal.as_bytes());
    }
    let mut wide = vec![0; field.1.saturating_sub(size_of::<u64>())];
    wide.extend_from_slice(&value.to_be_bytes());
    let kept = wide.split_off(wide.len() - field.1);
    put_text(block, field, &kept);
    if let Some(first) = block.get_mut(field.0) {
        *first |= 0x80;
    }
}

#[cfg(test)]
mod tests {
    use super::{HeaderParts, decode, encode};

    fn parts(size: u64, modified: i64, uid: u32) -> HeaderParts<'static> {
        HeaderParts {
            name: b"a/\xff",
            link: b"",
            kind: b'0',
            mode: 0o644,
            uid,
            gid: 0,
            user: "root",
            group: "root",
            size,
            modified,
        }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        for (size, modified, uid) in [
            (0, 0, 0),
            (8_589_934_591, 1, 2_097_151),
            (8_589_934_592, 1 << 40, 2_097_152),
            (1 << 50, 5, u32::MAX),
        ] {
            let header = decode(&encode(&parts(size, modified, uid))).unwrap();
            assert_eq!(
                (header.size, header.modified, header.mode, header.kind),
                (size, modified, 0o644, b'0')
            );
            assert_eq!(header.name, b"a/\xff");
        }
    }

    #[test]
    fn any_flipped_byte_is_noticed() {
        let good = encode(&parts(7, 8, 9));
        // Byte 155 is padding behind the sum.
        for at in (0..500).filter(|at| *at != 155) {
            let mut bad = good;
            bad[at] ^= 0x15;
            assert!(decode(&bad).is_err(), "byte {at}");
        }
    }
}
