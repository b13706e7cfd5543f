//! Listings: pages in the order of name bytes, or everything as it comes.
//!
//! A page is made by one walk that keeps only the smallest names after the cursor, so memory is a page whatever the
//! size of the directory, and the cursor is a name: entries that come and go between pages neither repeat nor hide
//! others.

use std::collections::BinaryHeap;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;

use super::directory::{Directory, Entries, kind, name_of};
use super::info::{FileInfo, info};
use super::path::shown;
use crate::errors::{GuestError, Outcome};
use crate::limits::{IO_CHUNK_BYTES, LIST_PAGE_MAX};
use crate::users::Accounts;

#[derive(Debug, Serialize)]
pub struct Page {
    items: Vec<FileInfo>,
    next_cursor: Option<String>,
}

/// Where a page begins and how long it is.
#[derive(Debug)]
pub struct PageRequest {
    after: Option<Vec<u8>>,
    limit: usize,
}

impl PageRequest {
    pub fn parse(cursor: Option<&[u8]>, limit: Option<u64>) -> Outcome<Self> {
        let after = cursor
            .map(|cursor| URL_SAFE_NO_PAD.decode(cursor))
            .transpose()
            .map_err(|_| GuestError::invalid("cursor must be one that a listing gave."))?;
        let limit = limit.map_or(Ok(LIST_PAGE_MAX), usize::try_from).unwrap_or(0);
        if limit == 0 || limit > LIST_PAGE_MAX {
            return Err(GuestError::invalid(format!(
                "limit must be from 1 to {LIST_PAGE_MAX}."
            )));
        }
        Ok(Self { after, limit })
    }
}

pub fn page(path: &Path, request: &PageRequest) -> Outcome<Page> {
    let failed = |cause: std::io::Error| GuestError::from_file_error(&cause, &shown(path));
    let directory = Directory::open(path).map_err(failed)?;
    let mut smallest: BinaryHeap<CString> = BinaryHeap::with_capacity(request.limit + 1);
    let mut more = false;
    for name in directory.entries().map_err(failed)? {
        let name = name.map_err(failed)?;
        if request
            .after
            .as_ref()
            .is_some_and(|after| name.as_bytes() <= after.as_slice())
        {
            continue;
        }
        if smallest.len() < request.limit {
            smallest.push(name);
        } else {
            more = true;
            if smallest.peek().is_some_and(|largest| name < *largest) {
                smallest.pop();
                smallest.push(name);
            }
        }
    }
    let names = smallest.into_sorted_vec();
    let next_cursor = names
        .last()
        .filter(|_| more)
        .map(|last| URL_SAFE_NO_PAD.encode(last.as_bytes()));
    let accounts = Accounts::read();
    let items = names
        .iter()
        .filter_map(|name| describe(&directory, path, name, &accounts))
        .collect();
    Ok(Page { items, next_cursor })
}

/// `None` for an entry that went away meanwhile.
fn describe(directory: &Directory, path: &Path, name: &CString, accounts: &Accounts) -> Option<FileInfo> {
    let status = directory.status(name).ok()?;
    let target = if kind(&status) == libc::S_IFLNK {
        directory.read_link(name).ok()
    } else {
        None
    };
    let target = target.as_ref().map(|target| OsStr::from_bytes(target.as_bytes()));
    Some(info(&path.join(name_of(name)), &status, target, accounts))
}

/// All entries, one JSON object per line, a chunk at a time.
pub struct Lines {
    path: PathBuf,
    directory: Directory,
    entries: Entries,
    accounts: Arc<Accounts>,
}

impl Lines {
    pub fn open(path: &Path) -> Outcome<Self> {
        let failed = |cause: std::io::Error| GuestError::from_file_error(&cause, &shown(path));
        let directory = Directory::open(path).map_err(failed)?;
        let entries = directory.entries().map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            directory,
            entries,
            accounts: Accounts::read(),
        })
    }

    /// The next lines; empty at the end.
    pub fn next_chunk(&mut self) -> Outcome<Bytes> {
        let mut chunk = BytesMut::new();
        while chunk.len() < IO_CHUNK_BYTES {
            let Some(name) = self.entries.next() else { break };
            let name = name.map_err(|cause| GuestError::from_file_error(&cause, &shown(&self.path)))?;
            let Some(info) = describe(&self.directory, &self.path, &name, &self.accounts) else {
                continue;
            };
            let line = serde_json::to_vec(&info).map_err(|cause| GuestError::internal(cause.to_string()))?;
            chunk.put_slice(&line);
            chunk.put_u8(b'\n');
        }
        Ok(chunk.freeze())
    }
}
