//! The `Process` object on the wire.
//!
//! It must fit a status frame whatever a client started, so long `argv` strings are shown shortened (the request
//! itself is remembered by fingerprint). JSON may need six bytes for one, which the bound allows for.

use std::sync::Arc;

use serde::Serialize;

use super::record::{Cause, Record, Stream};
use super::signals;
use super::start_request::{Program, StartRequest};

/// Bytes of argv that are shown in all.
const ARGV_SHOWN_MAX_BYTES: usize = 4096;
const CUT_MARK: &str = "…";

#[derive(Debug, Serialize)]
pub struct WindowView {
    start: u64,
    end: u64,
}

#[derive(Debug, Serialize)]
pub struct StdinView {
    pub accepted: u64,
    pub open: bool,
}

#[derive(Debug, Serialize)]
pub struct ProcessView {
    id: String,
    key: Option<String>,
    argv: Vec<String>,
    cwd: String,
    user: String,
    tty: bool,
    state: &'static str,
    pid: i32,
    exit_code: Option<i32>,
    signal: Option<String>,
    timed_out: bool,
    started_at_ms: u64,
    ended_at_ms: Option<u64>,
    duration_ms: Option<u64>,
    stdout: WindowView,
    stderr: WindowView,
    stdin: StdinView,
    output_open: bool,
    truncated: bool,
    cpu_ms: u64,
    memory_bytes: u64,
    cols: Option<u16>,
    rows: Option<u16>,
}

/// What a running tree uses, where somebody looked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    pub cpu_ms: u64,
    pub memory_bytes: u64,
}

pub fn view(record: &Arc<Record>, usage: Usage) -> ProcessView {
    let facts = &record.facts;
    record.look(|changing| {
        let window = |stream: Stream| {
            let ring = &changing.output.of(stream).ring;
            WindowView {
                start: ring.start(),
                end: ring.end(),
            }
        };
        let (stdout, stderr) = (window(Stream::Stdout), window(Stream::Stderr));
        let (exit_code, signal) = match changing.ended.map(|ended| ended.cause) {
            None => (None, None),
            Some(Cause::Code(code)) => (Some(code), None),
            Some(Cause::Signal(signal)) => (None, Some(signals::name(signal))),
        };
        let usage = changing.ended.map_or(usage, |ended| Usage {
            cpu_ms: ended.cpu_ms,
            memory_bytes: ended.memory_bytes,
        });
        ProcessView {
            id: facts.id.clone(),
            key: facts.key.clone(),
            argv: facts.argv.clone(),
            cwd: facts.cwd.clone(),
            user: facts.user.clone(),
            tty: facts.tty,
            state: if changing.ended.is_some() {
                "exited"
            } else {
                "running"
            },
            pid: facts.pid,
            exit_code,
            signal,
            timed_out: changing.timed_out,
            started_at_ms: facts.started_at_ms,
            ended_at_ms: changing.ended.map(|ended| ended.at_ms),
            duration_ms: changing.ended.map(|ended| record.duration_ms(&ended)),
            truncated: stdout.start > 0 || stderr.start > 0,
            stdout,
            stderr,
            stdin: StdinView {
                accepted: changing.stdin.accepted,
                open: changing.stdin.open,
            },
            output_open: changing.output_open(),
            cpu_ms: usage.cpu_ms,
            memory_bytes: usage.memory_bytes,
            cols: changing.size.map(|size| size.cols),
            rows: changing.size.map(|size| size.rows),
        }
    })
}

/// The strings of a request as they are shown.
pub fn shown_argv(request: &StartRequest, real: &[Vec<u8>]) -> Vec<String> {
    let shown: Vec<&[u8]> = match &request.program {
        Program::Argv(argv) => argv.iter().map(Vec::as_slice).collect(),
        Program::Shell(_) => real.iter().map(Vec::as_slice).collect(),
    };
    let mut left = ARGV_SHOWN_MAX_BYTES;
    let mut strings = Vec::new();
    for bytes in shown {
        let text = String::from_utf8_lossy(bytes);
        let cut = text.floor_char_boundary(left.min(text.len()));
        let head = text.get(..cut).unwrap_or_default();
        // Quotes and commas count too, so that many empty strings end as well.
        left = left.saturating_sub(head.len() + 4);
        strings.push(if cut < text.len() {
            format!("{head}{CUT_MARK}")
        } else {
            head.to_owned()
        });
        if left == 0 {
            break;
        }
    }
    strings
}
