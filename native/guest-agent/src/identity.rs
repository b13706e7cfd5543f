//! Who this sandbox is: given once by the host, before which the agent is a pristine pool member.
//!
//! The same identity again is fine (the host repeats what it is not sure of); another sandbox is refused, because
//! a used member never changes hands. Generation, environment and limits of the same sandbox may be renewed only
//! with the very same generation.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::errors::{ErrorCode, GuestError, Outcome};
use crate::naming::Herald;
use crate::process::group::Groups;
use crate::process::start_request::check_env;
use crate::users::Accounts;

#[derive(Debug, Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct LimitsBody {
    pids_max: Option<u64>,
    nofile: Option<u64>,
    nproc: Option<u64>,
}

/// The body of `PUT /v1/identity`.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct IdentityBody {
    sandbox: String,
    generation: u64,
    hostname: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    default_user: Option<String>,
    default_cwd: Option<String>,
    #[serde(default)]
    limits: LimitsBody,
}

/// Limits every process gets; zero means as inherited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    pub pids_max: u64,
    pub nofile: u64,
    pub nproc: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub sandbox: Option<String>,
    pub generation: Option<u64>,
    pub hostname: Option<String>,
    pub env: BTreeMap<String, String>,
    pub default_user: String,
    pub default_cwd: Option<String>,
    pub limits: ResourceLimits,
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            sandbox: None,
            generation: None,
            hostname: None,
            env: BTreeMap::new(),
            default_user: "root".to_owned(),
            default_cwd: None,
            limits: ResourceLimits::default(),
        }
    }
}

const SANDBOX_ID_MAX_BYTES: usize = 64;
const HOSTNAME_MAX_BYTES: usize = 64;
const USER_MAX_BYTES: usize = 256;

impl IdentityBody {
    pub fn check(self) -> Outcome<Identity> {
        let id_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if self.sandbox.is_empty()
            || self.sandbox.len() > SANDBOX_ID_MAX_BYTES
            || !self.sandbox.bytes().all(id_letter)
        {
            return Err(GuestError::invalid("sandbox must be a sandbox id."));
        }
        let host_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
        if self.hostname.as_ref().is_some_and(|name| {
            name.is_empty() || name.len() > HOSTNAME_MAX_BYTES || !name.bytes().all(host_letter)
        }) {
            return Err(GuestError::invalid(
                "hostname must be 1 to 64 letters, digits, dots and dashes.",
            ));
        }
        check_env(&self.env)?;
        let default_user = self.default_user.unwrap_or_else(|| "root".to_owned());
        if default_user.len() > USER_MAX_BYTES {
            return Err(GuestError::invalid("default_user is too long."));
        }
        Accounts::read().resolve(&default_user)?;
        if self
            .default_cwd
            .as_ref()
            .is_some_and(|cwd| !cwd.starts_with('/') || cwd.contains('\0'))
        {
            return Err(GuestError::invalid("default_cwd must be an absolute path."));
        }
        let limits = self.limits;
        if [limits.pids_max, limits.nofile, limits.nproc].contains(&Some(0)) {
            return Err(GuestError::invalid("limits must be 1 or more."));
        }
        Ok(Identity {
            sandbox: Some(self.sandbox),
            generation: Some(self.generation),
            hostname: self.hostname,
            env: self.env,
            default_user,
            default_cwd: self.default_cwd,
            limits: ResourceLimits {
                pids_max: limits.pids_max.unwrap_or(0),
                nofile: limits.nofile.unwrap_or(0),
                nproc: limits.nproc.unwrap_or(0),
            },
        })
    }
}

impl Identity {
    /// Whether `next` may take this identity's place; `Ok(false)` when it is the same already.
    pub fn accepts(&self, next: &Self) -> Outcome<bool> {
        if self.sandbox.is_none() {
            return Ok(true);
        }
        if self.sandbox == next.sandbox && self.generation == next.generation {
            return Ok(self != next);
        }
        Err(GuestError::new(
            ErrorCode::IdentityConflict,
            "This sandbox has its identity already; start another one instead.",
        ))
    }

    /// Makes names and limits true inside the sandbox. A limit that this kernel does not take is left as it is: the
    /// host's own holds in any case.
    pub fn apply(&self, herald: &Herald, groups: &Groups) -> Outcome<()> {
        herald.name(self.hostname.as_deref())?;
        if self.limits.pids_max > 0 {
            groups.limit_processes(self.limits.pids_max);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Identity, IdentityBody};

    fn identity(json: &str) -> Identity {
        serde_json::from_str::<IdentityBody>(json)
            .unwrap()
            .check()
            .unwrap()
    }

    #[test]
    fn is_taken_once_and_repeated_freely() {
        let first = identity(r#"{"sandbox":"sb1","generation":1,"env":{"A":"1"}}"#);
        assert_eq!(Identity::default().accepts(&first), Ok(true));
        assert_eq!(first.accepts(&first.clone()), Ok(false));
        for other in [
            r#"{"sandbox":"sb2","generation":1}"#,
            r#"{"sandbox":"sb1","generation":2}"#,
        ] {
            let refused = first.accepts(&identity(other)).map_err(|error| error.code.name());
            assert_eq!(refused, Err("identity_conflict"));
        }
    }

    #[test]
    fn refuses_what_is_not_described() {
        for bad in [
            r#"{"sandbox":"sb1","generation":-1}"#,
            r#"{"sandbox":"sb1","generation":1,"x":1}"#,
            r#"{"sandbox":"sb1"}"#,
        ] {
            assert!(serde_json::from_str::<IdentityBody>(bad).is_err(), "{bad}");
        }
        for bad in [
            r#"{"sandbox":"","generation":1}"#,
            r#"{"sandbox":"sb1","generation":1,"env":{"A=B":"1"}}"#,
            r#"{"sandbox":"sb1","generation":1,"default_cwd":"x"}"#,
            r#"{"sandbox":"sb1","generation":1,"limits":{"nofile":0}}"#,
        ] {
            assert!(
                serde_json::from_str::<IdentityBody>(bad)
                    .unwrap()
                    .check()
                    .is_err(),
                "{bad}"
            );
        }
    }
}
