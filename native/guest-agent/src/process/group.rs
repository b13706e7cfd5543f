//! A control group per process, where the sandbox has a tree for it: the sound way to know who belongs to whom.
//!
//! A child is born in its parent's group whatever it does to its session, parent or environment. The groups are made
//! below the agent's own, which carries the sandbox's limit of processes: version 2 counts everything below, exactly.
//! (gVisor's version 1 neither adds up nested groups nor asks the `pids` hierarchy at every fork, so it is not used.)
//! Only PID 1 does this: elsewhere the tree under `/sys/fs/cgroup` is the machine's. Without groups the lineage rests
//! on sessions and markers alone.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cgroup;
use crate::sync::LockAnyway;

const MEMBERS: &str = "cgroup.procs";
const LIMIT: &str = "pids.max";
const KILL: &str = "cgroup.kill";
const EVENTS: &str = "cgroup.events";

/// Where groups are made, and those that could not be removed yet.
#[derive(Debug)]
pub struct Groups {
    root: Option<PathBuf>,
    lingering: Mutex<Vec<PathBuf>>,
    /// A sweep was asked for and has not begun.
    sweeping: AtomicBool,
}

/// A new group and the file that takes members.
#[derive(Debug)]
pub struct Group {
    pub directory: PathBuf,
    pub door: File,
}

impl Groups {
    pub fn probe(as_init: bool) -> Self {
        let usable = |root: &PathBuf| {
            let probe = root.join("sandglass-probe");
            fs::create_dir(&probe).is_ok() && probe.join(MEMBERS).exists() && fs::remove_dir(&probe).is_ok()
        };
        let root = if as_init {
            cgroup::own().filter(usable)
        } else {
            None
        };
        Self {
            root,
            lingering: Mutex::default(),
            sweeping: AtomicBool::new(false),
        }
    }

    /// Bounds the processes and threads of the whole sandbox, the agent's included.
    pub fn limit_processes(&self, most: u64) {
        if let Some(root) = &self.root {
            let _ = fs::write(root.join(LIMIT), most.to_string());
        }
    }

    /// A group of this name; `None` where there are none.
    pub fn create(&self, name: &str) -> Option<Group> {
        let directory = self.root.as_ref()?.join(name);
        fs::create_dir(&directory).ok()?;
        match OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_CLOEXEC)
            .open(directory.join(MEMBERS))
        {
            Ok(door) => Some(Group { directory, door }),
            Err(_) => {
                self.remove(directory);
                None
            }
        }
    }

    /// Removes a group now, or when its last member is gone.
    pub fn remove(&self, directory: PathBuf) {
        if remove_empty(&directory) {
            return;
        }
        self.lingering.locked().push(directory);
    }

    /// Whether a sweep is worth starting now; at most one waits.
    pub fn wants_sweep(&self) -> bool {
        !self.lingering.locked().is_empty() && !self.sweeping.swap(true, Ordering::Relaxed)
    }

    /// Tries again those that still had members.
    pub fn sweep(&self) {
        self.sweeping.store(false, Ordering::Relaxed);
        let lingering = std::mem::take(&mut *self.lingering.locked());
        let left: Vec<PathBuf> = lingering
            .into_iter()
            .filter(|directory| !remove_empty(directory))
            .collect();
        self.lingering.locked().extend(left);
    }
}

fn remove_empty(directory: &Path) -> bool {
    fs::remove_dir(directory).is_ok() || !directory.exists()
}

/// Pids in a group and in groups made below it.
pub fn members(directory: &Path) -> Vec<i32> {
    let mut pids: Vec<i32> = fs::read_to_string(directory.join(MEMBERS))
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect();
    let below = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        pids.extend(members(&entry.path()));
    }
    pids
}

/// Whether anybody lives in a group or below it.
pub fn is_populated(directory: &Path) -> bool {
    fs::read_to_string(directory.join(EVENTS))
        .is_ok_and(|events| events.lines().any(|line| line == "populated 1"))
}

/// Ends everybody in a group and below it in one step that no fork escapes.
pub fn kill(directory: &Path) {
    // Without the file, those who are left are found one by one.
    let _ = fs::write(directory.join(KILL), "1");
}
