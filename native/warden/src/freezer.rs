//! The control group (version 2) that everything of sandboxes runs in, below this one directory.
//!
//! `cgroup.freeze` of a parent holds for all below it, for what joins later too, and a frozen process can still be killed. It works without any
//! controller, so also where version 1 has them all and version 2 is empty beside it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where launches enter. A leaf, because a group with controllers may hold no processes of its own.
pub const GATE: &str = "sandglass-gate";

pub struct Freezer {
    group: PathBuf,
}

impl Freezer {
    pub fn new(group: &Path) -> Self {
        Self {
            group: group.to_owned(),
        }
    }

    /// Makes the group and its gate if they are not there, and freezes it or lets it go. Repeating it costs a read.
    pub fn set(&self, frozen: bool) -> io::Result<()> {
        if self.frozen_as_told().ok() == Some(frozen) && self.group.join(GATE).exists() {
            return Ok(());
        }
        fs::create_dir_all(&self.group)?;
        // Before the gate is there to be entered.
        self.write(frozen)?;
        match fs::create_dir(self.group.join(GATE)) {
            Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => Err(cause),
            _ => Ok(()),
        }
    }

    /// Something runs below it.
    pub fn is_populated(&self) -> bool {
        match fs::read_to_string(self.group.join("cgroup.events")) {
            Ok(text) => text.lines().any(|line| line == "populated 1"),
            Err(cause) => cause.kind() != io::ErrorKind::NotFound,
        }
    }

    fn frozen_as_told(&self) -> io::Result<bool> {
        Ok(fs::read_to_string(self.group.join("cgroup.freeze"))?.trim() == "1")
    }

    /// Never makes the file: where there is none, there is no freezer.
    fn write(&self, frozen: bool) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .open(self.group.join("cgroup.freeze"))?;
        file.write_all(if frozen { b"1" } else { b"0" })
    }
}
