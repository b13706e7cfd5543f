//! `range: bytes=…`, one range. Several, or another unit, mean the whole file, as HTTP allows.

use crate::errors::{ErrorCode, GuestError, Outcome};

/// First byte and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub from: u64,
    pub length: u64,
}

/// `None` when the whole file is meant.
pub fn parse(header: Option<&str>, size: u64) -> Outcome<Option<Span>> {
    let Some(spec) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else {
        return Ok(None);
    };
    let Some((first, last)) = spec.split_once('-') else {
        return Ok(None);
    };
    let span = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => cut(first, last.saturating_add(1), size),
        (Some(first), None) if last.is_empty() => cut(first, size, size),
        (None, Some(suffix)) if first.is_empty() => {
            if suffix == 0 {
                None
            } else {
                cut(size.saturating_sub(suffix), size, size)
            }
        }
        _ => return Ok(None),
    };
    match span {
        Some(span) => Ok(Some(span)),
        None => Err(GuestError::new(
            ErrorCode::RangeNotSatisfiable,
            format!("The file has {size} bytes; ask for some of them."),
        )),
    }
}

fn cut(from: u64, end: u64, size: u64) -> Option<Span> {
    (from < size).then(|| Span {
        from,
        length: end.min(size) - from,
    })
}

fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

#[cfg(test)]
mod tests {
    use super::{Span, parse};

    #[test]
    fn reads_one_range() {
        let span = |from, length| Ok(Some(Span { from, length }));
        assert_eq!(parse(Some("bytes=0-0"), 10), span(0, 1));
        assert_eq!(parse(Some("bytes=3-"), 10), span(3, 7));
        assert_eq!(parse(Some("bytes=-4"), 10), span(6, 4));
        assert_eq!(parse(Some("bytes=-40"), 10), span(0, 10));
        assert_eq!(parse(Some("bytes=2-400"), 10), span(2, 8));
        for whole in [
            "bytes=1-2,4-5",
            "lines=1-2",
            "bytes=5-2",
            "bytes=x-",
            "bytes=+1-2",
            "bytes=",
        ] {
            assert_eq!(parse(Some(whole), 10), Ok(None), "{whole}");
        }
        for beyond in ["bytes=10-", "bytes=10-12", "bytes=-0"] {
            assert!(parse(Some(beyond), 10).is_err(), "{beyond}");
        }
        assert!(parse(Some("bytes=0-"), 0).is_err());
        assert_eq!(parse(None, 10), Ok(None));
    }
}
