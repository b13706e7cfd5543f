//! The one tree of control groups (version 2) as seen inside the sandbox, where the runtime mounts it.

use std::fs;
use std::path::PathBuf;

const MOUNT: &str = "/sys/fs/cgroup";

/// The group this agent runs in. Limits of its processes are set there, groups of theirs are made below it.
pub fn own() -> Option<PathBuf> {
    let memberships = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = memberships.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(PathBuf::from(MOUNT).join(group)).filter(|directory| directory.join("cgroup.procs").exists())
}
