//! `if-match` and `if-none-match`.

use hyper::HeaderMap;
use hyper::header::{HeaderName, IF_MATCH, IF_NONE_MATCH};

use super::directory::Status;
use super::etag;
use crate::errors::{ErrorCode, GuestError, Outcome};

#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    Any,
    Tags(Vec<String>),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preconditions {
    matches: Option<Condition>,
    none_matches: Option<Condition>,
}

impl Preconditions {
    pub fn from_headers(headers: &HeaderMap) -> Outcome<Self> {
        Ok(Self {
            matches: condition(headers, &IF_MATCH)?,
            none_matches: condition(headers, &IF_NONE_MATCH)?,
        })
    }

    /// Whether the target must not exist, which the rename itself can then see to.
    pub fn must_be_new(&self) -> bool {
        self.none_matches == Some(Condition::Any)
    }

    /// For writes; `None` where there is no file.
    pub fn check(&self, status: Option<&Status>) -> Outcome<()> {
        if self.holds_match(status) && !self.is_named(status) {
            Ok(())
        } else {
            Err(GuestError::new(
                ErrorCode::PreconditionFailed,
                "The file is not in the version asked for; read it again and decide anew.",
            ))
        }
    }

    /// For reads: whether the reader has this version already.
    pub fn is_known(&self, status: &Status) -> Outcome<bool> {
        if !self.holds_match(Some(status)) {
            return self.check(Some(status)).map(|()| false);
        }
        Ok(self.is_named(Some(status)))
    }

    fn holds_match(&self, status: Option<&Status>) -> bool {
        self.matches
            .as_ref()
            .is_none_or(|condition| includes(condition, status))
    }

    fn is_named(&self, status: Option<&Status>) -> bool {
        self.none_matches
            .as_ref()
            .is_some_and(|condition| includes(condition, status))
    }
}

fn includes(condition: &Condition, status: Option<&Status>) -> bool {
    match (condition, status) {
        (_, None) => false,
        (Condition::Any, Some(_)) => true,
        (Condition::Tags(tags), Some(status)) => tags.contains(&etag::of(status)),
    }
}

fn condition(headers: &HeaderMap, name: &HeaderName) -> Outcome<Option<Condition>> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let text = value
        .to_str()
        .map_err(|_| GuestError::invalid(format!("{name} must be * or quoted tags.")))?;
    if text.trim() == "*" {
        return Ok(Some(Condition::Any));
    }
    let tags: Vec<String> = text.split(',').map(|tag| tag.trim().to_owned()).collect();
    if tags
        .iter()
        .all(|tag| tag.len() >= 2 && tag.starts_with('"') && tag.ends_with('"'))
    {
        Ok(Some(Condition::Tags(tags)))
    } else {
        Err(GuestError::invalid(format!("{name} must be * or quoted tags.")))
    }
}
