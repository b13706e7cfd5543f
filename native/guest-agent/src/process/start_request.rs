//! `StartProcess`: what a client asks for, checked before anything happens.
//!
//! Exactly one of `argv`, `argv_b64`, `shell`. NUL can be in none of the strings, since the kernel would cut
//! there. Everything is bounded here, so the rest of the agent need not doubt it.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash, RandomState};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::errors::{GuestError, Outcome};
use crate::limits::{
    ARGV_MAX, ENV_MAX, KEY_MAX_BYTES, KILL_GRACE_DEFAULT_MS, KILL_GRACE_MAX_MS, PATH_MAX_BYTES,
    TERMINAL_SIDE_MAX, TIMEOUT_MAX_MS,
};

#[derive(Debug, Clone, Deserialize, Hash)]
#[serde(deny_unknown_fields)]
pub struct StartProcess {
    argv: Option<Vec<String>>,
    argv_b64: Option<Vec<String>>,
    shell: Option<String>,
    cwd: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    user: Option<String>,
    #[serde(default)]
    stdin: bool,
    tty: Option<TerminalSize>,
    timeout_ms: Option<u64>,
    key: Option<String>,
    kill_grace_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, Deserialize, Hash, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    pub cols: u16,
    pub rows: u16,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    Argv(Vec<Vec<u8>>),
    Shell(Vec<u8>),
}

/// A start request that may be carried out.
#[derive(Debug, Clone)]
pub struct StartRequest {
    pub program: Program,
    pub cwd: Option<String>,
    pub env: BTreeMap<String, String>,
    pub user: Option<String>,
    pub stdin: bool,
    pub tty: Option<TerminalSize>,
    pub timeout_ms: Option<u64>,
    pub key: Option<String>,
    pub kill_grace_ms: u64,
    pub fingerprint: Fingerprint,
}

/// Tells two requests with one key apart. Keyed at random per agent, so nobody can prepare a collision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(u64, u64);

/// The two hash keys of this agent.
#[derive(Default)]
pub struct Fingerprints(RandomState, RandomState);

impl Fingerprints {
    fn of(&self, request: &StartProcess) -> Fingerprint {
        Fingerprint(self.0.hash_one(request), self.1.hash_one(request))
    }
}

impl TerminalSize {
    pub fn check(self) -> Outcome<Self> {
        let side = 1..=TERMINAL_SIDE_MAX;
        if side.contains(&self.cols) && side.contains(&self.rows) {
            Ok(self)
        } else {
            Err(GuestError::invalid(format!(
                "cols and rows must be from 1 to {TERMINAL_SIDE_MAX}."
            )))
        }
    }
}

impl StartProcess {
    pub fn check(self, fingerprints: &Fingerprints) -> Outcome<StartRequest> {
        let fingerprint = fingerprints.of(&self);
        let program = program(self.argv, self.argv_b64, self.shell)?;
        if let Some(cwd) = &self.cwd {
            check_cwd(cwd)?;
        }
        check_env(&self.env)?;
        if let Some(key) = &self.key {
            check_key(key)?;
        }
        if self
            .timeout_ms
            .is_some_and(|timeout| timeout == 0 || timeout > TIMEOUT_MAX_MS)
        {
            return Err(GuestError::invalid(format!(
                "timeout_ms must be from 1 to {TIMEOUT_MAX_MS}."
            )));
        }
        let kill_grace_ms = self.kill_grace_ms.unwrap_or(KILL_GRACE_DEFAULT_MS);
        if kill_grace_ms > KILL_GRACE_MAX_MS {
            return Err(GuestError::invalid(format!(
                "kill_grace_ms must be at most {KILL_GRACE_MAX_MS}."
            )));
        }
        Ok(StartRequest {
            program,
            cwd: self.cwd,
            env: self.env,
            user: self.user,
            stdin: self.stdin,
            tty: self.tty.map(TerminalSize::check).transpose()?,
            timeout_ms: self.timeout_ms,
            key: self.key,
            kill_grace_ms,
            fingerprint,
        })
    }
}

fn program(
    argv: Option<Vec<String>>,
    argv_b64: Option<Vec<String>>,
    shell: Option<String>,
) -> Outcome<Program> {
    let one_of = || GuestError::invalid("Give exactly one of argv, argv_b64 and shell.");
    match (argv, argv_b64, shell) {
        (Some(argv), None, None) => Ok(Program::Argv(check_argv(
            argv.into_iter().map(String::into_bytes).collect(),
        )?)),
        (None, Some(encoded), None) => {
            let decoded: Result<Vec<Vec<u8>>, _> = encoded.iter().map(|text| STANDARD.decode(text)).collect();
            let argv = decoded
                .map_err(|_| GuestError::invalid("argv_b64 must hold standard base64 with padding."))?;
            Ok(Program::Argv(check_argv(argv)?))
        }
        (None, None, Some(shell)) => {
            if shell.contains('\0') {
                return Err(GuestError::invalid("shell must not hold a NUL character."));
            }
            Ok(Program::Shell(shell.into_bytes()))
        }
        _ => Err(one_of()),
    }
}

fn check_argv(argv: Vec<Vec<u8>>) -> Outcome<Vec<Vec<u8>>> {
    if argv.len() > ARGV_MAX {
        return Err(GuestError::invalid(format!(
            "argv must have at most {ARGV_MAX} strings."
        )));
    }
    if argv.first().is_none_or(Vec::is_empty) {
        return Err(GuestError::invalid("argv must start with the name of a program."));
    }
    if argv.iter().any(|argument| argument.contains(&0)) {
        return Err(GuestError::invalid("argv must not hold a NUL character."));
    }
    Ok(argv)
}

fn check_cwd(cwd: &str) -> Outcome<()> {
    if cwd.starts_with('/') && !cwd.contains('\0') && cwd.len() <= PATH_MAX_BYTES {
        Ok(())
    } else {
        Err(GuestError::invalid(format!(
            "cwd must be an absolute path of at most {PATH_MAX_BYTES} bytes."
        )))
    }
}

/// Also used for the environment that comes with the sandbox's identity.
pub fn check_env(env: &BTreeMap<String, String>) -> Outcome<()> {
    if env.len() > ENV_MAX {
        return Err(GuestError::invalid(format!(
            "env must have at most {ENV_MAX} names."
        )));
    }
    for (name, value) in env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(GuestError::invalid(
                "env names must not be empty or hold =, and nothing in env may hold NUL.",
            ));
        }
    }
    Ok(())
}

pub fn check_key(key: &str) -> Outcome<()> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    if !key.is_empty() && key.len() <= KEY_MAX_BYTES && key.bytes().all(legal) {
        Ok(())
    } else {
        Err(GuestError::invalid(format!(
            "key must be 1 to {KEY_MAX_BYTES} of A-Z a-z 0-9 . _ : -."
        )))
    }
}
