//! Query strings: known names only, each at most once, values as raw bytes.

use super::percent;
use crate::errors::{GuestError, Outcome};
use crate::limits::QUERY_MAX_BYTES;

#[derive(Debug, Default)]
pub struct Query(Vec<(&'static str, Vec<u8>)>);

impl Query {
    pub fn parse(raw: Option<&str>, known: &'static [&'static str]) -> Outcome<Self> {
        let raw = raw.unwrap_or_default();
        if raw.len() > QUERY_MAX_BYTES {
            return Err(GuestError::invalid(format!(
                "The query is longer than {QUERY_MAX_BYTES} bytes; shorten it."
            )));
        }
        let mut pairs: Vec<(&'static str, Vec<u8>)> = Vec::new();
        for part in raw.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let Some(name) = known.iter().copied().find(|candidate| *candidate == name) else {
                return Err(GuestError::invalid(format!(
                    "A query parameter is not known here; use only {}.",
                    if known.is_empty() {
                        "none".to_owned()
                    } else {
                        known.join(", ")
                    }
                )));
            };
            if pairs.iter().any(|(seen, _)| *seen == name) {
                return Err(GuestError::invalid(format!(
                    "The query has {name} twice; give it once."
                )));
            }
            let Some(value) = percent::decode(value.as_bytes()) else {
                return Err(GuestError::invalid(format!(
                    "The value of {name} has a broken percent escape; encode it again."
                )));
            };
            pairs.push((name, value));
        }
        Ok(Self(pairs))
    }

    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.0
            .iter()
            .find(|(candidate, _)| *candidate == name)
            .map(|(_, value)| value.as_slice())
    }

    pub fn text(&self, name: &str) -> Outcome<Option<&str>> {
        self.bytes(name)
            .map(|value| {
                std::str::from_utf8(value).map_err(|_| GuestError::invalid(format!("{name} must be UTF-8.")))
            })
            .transpose()
    }

    /// A decimal number without sign.
    pub fn number(&self, name: &str) -> Outcome<Option<u64>> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits => Ok(Some(number)),
            _ => Err(GuestError::invalid(format!(
                "{name} must be a whole number, zero or more."
            ))),
        }
    }

    pub fn flag(&self, name: &str) -> Outcome<Option<bool>> {
        match self.bytes(name) {
            None => Ok(None),
            Some(b"0") => Ok(Some(false)),
            Some(b"1") => Ok(Some(true)),
            Some(_) => Err(GuestError::invalid(format!("{name} must be 0 or 1."))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Query;

    #[test]
    fn reads_known_names_once() {
        let query = Query::parse(
            Some("path=/a%2fb&since=12&follow=1"),
            &["path", "since", "follow"],
        )
        .unwrap();
        assert_eq!(query.bytes("path"), Some(&b"/a/b"[..]));
        assert_eq!(query.number("since").unwrap(), Some(12));
        assert_eq!(query.flag("follow").unwrap(), Some(true));
        assert_eq!(
            query.flag("path").map_err(|error| error.code.name()),
            Err("invalid_request")
        );
    }

    #[test]
    fn refuses_unknown_repeated_and_signed() {
        assert!(Query::parse(Some("x=1"), &["path"]).is_err());
        assert!(Query::parse(Some("path=1&path=2"), &["path"]).is_err());
        let query = Query::parse(Some("since=%2B1"), &["since"]).unwrap();
        assert!(query.number("since").is_err());
    }
}
