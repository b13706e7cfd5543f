//! Percent decoding to raw bytes, once.
//!
//! Paths are bytes: `%ff` is as good as `%41`, and `+` is a plus sign. A broken escape is an error rather than
//! literal text, so that two readers of one query never see two different paths.

/// `None` when an escape is not two hexadecimal digits.
pub fn decode(input: &[u8]) -> Option<Vec<u8>> {
    let mut output = Vec::with_capacity(input.len());
    let mut rest = input.iter().copied();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = hex_digit(rest.next()?)?;
            let low = hex_digit(rest.next()?)?;
            output.push(high << 4 | low);
        } else {
            output.push(byte);
        }
    }
    Some(output)
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn decodes_once_and_to_bytes() {
        assert_eq!(decode(b"/a%20b%ff+%2541"), Some(b"/a b\xff+%41".to_vec()));
    }

    #[test]
    fn refuses_broken_escapes() {
        for broken in [&b"%"[..], b"%4", b"%zz", b"a%4g", b"%+1"] {
            assert_eq!(decode(broken), None);
        }
    }
}
