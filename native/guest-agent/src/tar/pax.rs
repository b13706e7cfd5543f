//! PAX records: `LENGTH KEY=VALUE\n`, the length counting itself.

/// What this agent reads of them; other keys are times and comments nobody asked for.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Pax {
    pub path: Option<Vec<u8>>,
    pub link: Option<Vec<u8>>,
    pub size: Option<u64>,
    pub modified: Option<i64>,
    /// Sparse files are stored in a way of their own, which is not read here.
    pub sparse: bool,
}

impl Pax {
    /// Adds the records in `bytes`; `None` when they are malformed.
    pub fn add(&mut self, bytes: &[u8]) -> Option<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let space = rest.iter().position(|byte| *byte == b' ')?;
            let (digits, _) = rest.split_at(space);
            let length: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
            let record = rest.get(space + 1..length)?.strip_suffix(b"\n")?;
            rest = rest.get(length..)?;
            let equals = record.iter().position(|byte| *byte == b'=')?;
            let (key, value) = (record.get(..equals)?, record.get(equals + 1..)?);
            self.set(key, value)?;
        }
        Some(())
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        match key {
            b"path" => self.path = Some(value.to_vec()),
            b"linkpath" => self.link = Some(value.to_vec()),
            b"size" => self.size = Some(std::str::from_utf8(value).ok()?.parse().ok()?),
            b"mtime" => {
                let text = std::str::from_utf8(value).ok()?;
                let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
                self.modified = Some(whole.parse().ok()?);
            }
            key if key.starts_with(b"GNU.sparse.") => self.sparse = true,
            _ => {}
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::Pax;

    #[test]
    fn reads_records_and_refuses_broken_ones() {
        let mut pax = Pax::default();
        assert_eq!(
            pax.add(b"14 path=a\nb/c\n12 size=123\n21 mtime=-12.5000000\n"),
            Some(())
        );
        assert_eq!(pax.path.as_deref(), Some(&b"a\nb/c"[..]));
        assert_eq!((pax.size, pax.modified), (Some(123), Some(-12)));
        for bad in [
            &b"x"[..],
            b"3 x",
            b"8 path=a\n",
            b"99 path=a\n",
            b"0 \n",
            b" \n",
            b"12 size=abc\n",
            b"7 path\n",
        ] {
            assert_eq!(Pax::default().add(bad), None, "{bad:?}");
        }
    }
}
