//! From a checked request to everything `execve` needs, resolved inside the guest.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::Path;

use super::environment;
use super::start_request::{Program, StartRequest, TerminalSize};
use crate::errors::{GuestError, Outcome};
use crate::identity::{Identity, ResourceLimits};
use crate::users::{Accounts, User};

#[derive(Debug)]
pub struct SpawnPlan {
    /// Paths to try in order, as `execvp` would.
    pub candidates: Vec<CString>,
    pub argv: Vec<CString>,
    pub envp: Vec<CString>,
    pub cwd: CString,
    pub user: User,
    pub stdin: bool,
    pub tty: Option<TerminalSize>,
    pub limits: ResourceLimits,
}

pub fn resolve(request: &StartRequest, identity: &Identity, process_id: &str) -> Outcome<SpawnPlan> {
    let wanted = request.user.as_deref().unwrap_or(&identity.default_user);
    let user = Accounts::read().resolve(wanted)?;
    let env = environment::build(
        &identity.env,
        &user,
        &request.env,
        request.tty.is_some(),
        process_id,
    );
    let argv = match &request.program {
        Program::Argv(argv) => argv.clone(),
        Program::Shell(script) => shell_argv(script),
    };
    let name = argv.first().cloned().unwrap_or_default();
    let path = env.get("PATH").map_or(environment::PATH_DEFAULT, String::as_str);
    Ok(SpawnPlan {
        candidates: candidates(&name, path)?,
        argv: argv.into_iter().map(c_string).collect::<Outcome<_>>()?,
        envp: c_environment(env)?,
        cwd: c_string(cwd_of(request, identity, &user).into_bytes())?,
        stdin: request.stdin,
        tty: request.tty,
        limits: identity.limits,
        user,
    })
}

/// The directory a process starts in when it names none: the sandbox's, else the user's home, else the root.
fn cwd_of(request: &StartRequest, identity: &Identity, user: &User) -> String {
    if let Some(cwd) = request.cwd.as_ref().or(identity.default_cwd.as_ref()) {
        return cwd.clone();
    }
    if Path::new(&user.home).is_dir() {
        user.home.clone()
    } else {
        "/".to_owned()
    }
}

fn shell_argv(script: &[u8]) -> Vec<Vec<u8>> {
    let shell: [&[u8]; 2] = if Path::new("/bin/bash").exists() {
        [b"/bin/bash", b"-lc"]
    } else {
        [b"/bin/sh", b"-c"]
    };
    shell.into_iter().chain([script]).map(<[u8]>::to_vec).collect()
}

/// A name with a slash is itself; another is looked for along PATH.
fn candidates(name: &[u8], path: &str) -> Outcome<Vec<CString>> {
    if name.contains(&b'/') {
        return Ok(vec![c_string(name.to_vec())?]);
    }
    path.split(':')
        .map(|directory| {
            let mut candidate = if directory.is_empty() {
                b".".to_vec()
            } else {
                directory.as_bytes().to_vec()
            };
            candidate.push(b'/');
            candidate.extend_from_slice(name);
            c_string(candidate)
        })
        .collect()
}

fn c_environment(env: BTreeMap<String, String>) -> Outcome<Vec<CString>> {
    env.into_iter()
        .map(|(name, value)| c_string(format!("{name}={value}").into_bytes()))
        .collect()
}

fn c_string(bytes: Vec<u8>) -> Outcome<CString> {
    CString::new(bytes).map_err(|_| GuestError::invalid("argv, cwd and env must not hold a NUL character."))
}
