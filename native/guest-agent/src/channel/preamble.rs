//! One JSON line each way before HTTP/2: who is here, and whether the host wants it.

use serde::{Deserialize, Serialize};

use crate::limits::PREAMBLE_MAX_BYTES;

pub const PROTOCOL: &str = "sandglass-guest";
pub const PROTOCOL_VERSION: u32 = 1;
pub const FEATURES: [&str; 5] = ["exec", "files", "archive", "watch", "pty"];

/// Guest to host.
#[derive(Debug, Serialize)]
pub struct Hello<'a> {
    pub protocol: &'static str,
    pub version: u32,
    pub agent: &'static str,
    pub boot_id: &'a str,
    /// Random per dial.
    pub session: &'a str,
    pub sandbox: Option<&'a str>,
    pub generation: Option<u64>,
    pub features: [&'static str; 5],
}

/// Host to guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Accepted { epoch: u64 },
    Refused,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerBody {
    accept: bool,
    version: Option<u32>,
    epoch: Option<u64>,
    #[serde(rename = "reason")]
    _reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreambleError {
    TooLong,
    NotALine,
    NotJson,
    OtherVersion,
}

pub fn encode(hello: &Hello<'_>) -> Option<Vec<u8>> {
    let mut line = serde_json::to_vec(hello).ok()?;
    line.push(b'\n');
    (line.len() <= PREAMBLE_MAX_BYTES).then_some(line)
}

/// Reads the host's line, newline included.
pub fn decode(line: &[u8]) -> Result<Answer, PreambleError> {
    if line.len() > PREAMBLE_MAX_BYTES {
        return Err(PreambleError::TooLong);
    }
    let json = line.strip_suffix(b"\n").ok_or(PreambleError::NotALine)?;
    if json.contains(&b'\n') {
        return Err(PreambleError::NotALine);
    }
    let body: AnswerBody = serde_json::from_slice(json).map_err(|_| PreambleError::NotJson)?;
    match body {
        AnswerBody {
            accept: true,
            version: Some(PROTOCOL_VERSION),
            epoch: Some(epoch),
            ..
        } => Ok(Answer::Accepted { epoch }),
        AnswerBody {
            accept: true,
            version: Some(_),
            epoch: Some(_),
            ..
        } => Err(PreambleError::OtherVersion),
        AnswerBody { accept: true, .. } => Err(PreambleError::NotJson),
        AnswerBody { accept: false, .. } => Ok(Answer::Refused),
    }
}
