//! The `FileInfo` object on the wire.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::directory::{Status, kind, permissions};
use super::etag;
use crate::users::Accounts;

#[derive(Debug, Serialize)]
pub struct FileInfo {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_b64: Option<String>,
    path: String,
    #[serde(rename = "type")]
    kind: &'static str,
    size: u64,
    mode: String,
    uid: u32,
    gid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    mtime_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_b64: Option<String>,
}

/// Text for everybody, and the bytes where the text is not all of them.
#[derive(Debug)]
pub struct Name {
    pub text: String,
    pub encoded: Option<String>,
}

impl Name {
    pub fn of(bytes: &OsStr) -> Self {
        match bytes.to_str() {
            Some(text) => Self {
                text: text.to_owned(),
                encoded: None,
            },
            None => Self {
                text: bytes.to_string_lossy().into_owned(),
                encoded: Some(STANDARD.encode(bytes.as_bytes())),
            },
        }
    }
}

/// `target` is what a link says, when it was read.
pub fn info(path: &Path, status: &Status, target: Option<&OsStr>, accounts: &Accounts) -> FileInfo {
    let name = Name::of(path.file_name().unwrap_or(OsStr::new("/")));
    let target = target.map(Name::of);
    let kind = kind(status);
    FileInfo {
        name: name.text,
        name_b64: name.encoded,
        path: path.to_string_lossy().into_owned(),
        kind: kind_name(kind),
        size: u64::try_from(status.st_size).unwrap_or(0),
        mode: format!("{:04o}", permissions(status)),
        uid: status.st_uid,
        gid: status.st_gid,
        user: accounts.user_name(status.st_uid).map(str::to_owned),
        group: accounts.group_name(status.st_gid).map(str::to_owned),
        mtime_ms: status
            .st_mtime
            .saturating_mul(1000)
            .saturating_add(status.st_mtime_nsec / 1_000_000),
        etag: (kind == libc::S_IFREG).then(|| etag::of(status)),
        target_b64: target.as_ref().and_then(|name| name.encoded.clone()),
        target: target.map(|name| name.text),
    }
}

fn kind_name(kind: libc::mode_t) -> &'static str {
    match kind {
        libc::S_IFDIR => "directory",
        libc::S_IFLNK => "symlink",
        libc::S_IFIFO => "fifo",
        libc::S_IFSOCK => "socket",
        libc::S_IFBLK => "block",
        libc::S_IFCHR => "char",
        _ => "file",
    }
}
