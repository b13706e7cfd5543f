//! Paths as clients send them: absolute, raw bytes, bounded, never resolved here.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::errors::{ErrorCode, GuestError, Outcome};
use crate::limits::{NAME_MAX_BYTES, PATH_MAX_BYTES};

/// A checked path; `..` in it is legal and means what it means to the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestPath(PathBuf);

impl GuestPath {
    pub fn new(bytes: &[u8]) -> Outcome<Self> {
        let refused = |what: &str| {
            Err(GuestError::new(
                ErrorCode::PathInvalid,
                format!("The path {what}."),
            ))
        };
        if bytes.is_empty() {
            return refused("is empty; give an absolute path");
        }
        if !bytes.starts_with(b"/") {
            return refused("is not absolute; start it with a slash");
        }
        if bytes.contains(&0) {
            return refused("holds a NUL byte; no file has such a name");
        }
        if bytes.len() > PATH_MAX_BYTES {
            return refused("is longer than 4096 bytes; shorten it");
        }
        if bytes
            .split(|byte| *byte == b'/')
            .any(|name| name.len() > NAME_MAX_BYTES)
        {
            return refused("has a name longer than 255 bytes; shorten it");
        }
        Ok(Self(PathBuf::from(OsString::from_vec(bytes.to_vec()))))
    }

    /// From a request field, as text or as base64 of raw bytes.
    pub fn from_fields(text: Option<&str>, encoded: Option<&str>, field: &str) -> Outcome<Self> {
        match (text, encoded) {
            (Some(text), None) => Self::new(text.as_bytes()),
            (None, Some(encoded)) => match STANDARD.decode(encoded) {
                Ok(bytes) => Self::new(&bytes),
                Err(_) => Err(GuestError::invalid(format!(
                    "{field}_b64 must be standard base64 with padding."
                ))),
            },
            _ => Err(GuestError::invalid(format!(
                "Give exactly one of {field} and {field}_b64."
            ))),
        }
    }

    pub fn as_path(&self) -> &Path {
        &self.0
    }

    pub fn bytes(&self) -> &[u8] {
        self.0.as_os_str().as_bytes()
    }

    /// How errors name it.
    pub fn shown(&self) -> String {
        shown(&self.0)
    }

    /// Directory and last name, taken apart as text. Refused where there is no name to work on: `/`, `//`, and
    /// paths that end in `.` or `..`, which name something else than they seem to.
    pub fn split(&self) -> Outcome<(PathBuf, CString)> {
        let trimmed = self.trimmed();
        let (parent, name) = match trimmed.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (
                trimmed.get(..=slash).unwrap_or(b"/"),
                trimmed.get(slash + 1..).unwrap_or_default(),
            ),
            None => (&b"/"[..], trimmed),
        };
        if matches!(name, b"" | b"." | b"..") {
            return Err(GuestError::new(
                ErrorCode::PathInvalid,
                "The path must end in the name of a file or directory other than the root, `.` and `..`.",
            ));
        }
        let name = CString::new(name)
            .map_err(|_| GuestError::new(ErrorCode::PathInvalid, "The path holds a NUL byte."))?;
        Ok((PathBuf::from(OsStr::from_bytes(parent)), name))
    }

    fn trimmed(&self) -> &[u8] {
        let bytes = self.bytes();
        let end = bytes
            .iter()
            .rposition(|byte| *byte != b'/')
            .map_or(0, |last| last + 1);
        bytes.get(..end).unwrap_or_default()
    }
}

/// Paths in error sentences: readable, and never a whole page.
pub fn shown(path: &Path) -> String {
    const SHOWN_MAX: usize = 200;
    let text = path.to_string_lossy();
    let cut = text.floor_char_boundary(SHOWN_MAX.min(text.len()));
    let head = text.get(..cut).unwrap_or_default().escape_debug().to_string();
    if cut < text.len() {
        format!("{head}…")
    } else {
        head
    }
}

#[cfg(test)]
mod tests {
    use super::GuestPath;

    #[test]
    fn takes_bytes_and_refuses_what_is_no_path() {
        assert!(GuestPath::new(b"/a/\xff\n#?%").is_ok());
        let long = [b"/".as_slice(), &[b'x'; 256]].concat();
        let deep = b"/x".repeat(2049);
        for bad in [&b""[..], b"a", b"/a\0b", &long, &deep] {
            assert_eq!(
                GuestPath::new(bad).map_err(|error| error.code.name()),
                Err("path_invalid")
            );
        }
    }

    #[test]
    fn splits_off_the_last_name_or_refuses() {
        let (parent, name) = GuestPath::new(b"/a//b/c//").unwrap().split().unwrap();
        assert_eq!((parent.to_str(), name.to_bytes()), (Some("/a//b/"), &b"c"[..]));
        let (parent, name) = GuestPath::new(b"/c").unwrap().split().unwrap();
        assert_eq!((parent.to_str(), name.to_bytes()), (Some("/"), &b"c"[..]));
        for bad in [&b"/"[..], b"//", b"/.", b"/..", b"/a/.", b"/a/..", b"/a/./"] {
            assert!(GuestPath::new(bad).unwrap().split().is_err());
        }
    }
}
