//! guard: restart.deadline. The deadline on disk, so that a warden that starts again neither loses nor prolongs it.
//!
//! The clock begins anew with each boot, so the file names the boot that it is of: of any other one it says nothing, and nothing may run. A file that
//! cannot be read says nothing either. It is replaced as a whole; what a crash leaves is the old one, which is shorter.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::deadline::Deadline;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

pub struct DeadlineFile {
    path: PathBuf,
    boot: String,
}

impl DeadlineFile {
    pub fn of_this_boot(path: &Path) -> io::Result<Self> {
        Ok(Self::new(path, fs::read_to_string(BOOT_ID)?.trim()))
    }

    fn new(path: &Path, boot: &str) -> Self {
        Self {
            path: path.to_owned(),
            boot: boot.to_owned(),
        }
    }

    pub fn read(&self) -> Deadline {
        fs::read_to_string(&self.path)
            .ok()
            .and_then(|text| {
                let (boot, at) = text.strip_suffix('\n')?.split_once(' ')?;
                if boot != self.boot {
                    return None;
                }
                at.parse().ok()
            })
            .map_or(Deadline::PASSED, Deadline::at)
    }

    pub fn write(&self, deadline: Deadline) -> io::Result<()> {
        let beside = self.path.with_extension("new");
        fs::write(&beside, format!("{} {}\n", self.boot, deadline.at_ns()))?;
        fs::rename(&beside, &self.path)
    }

    pub fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("sandglass-warden-{}-{name}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        directory.join("deadline")
    }

    #[test]
    fn says_what_was_written_under_the_same_boot_only() {
        let path = place("boots");
        let file = DeadlineFile::new(&path, "one");
        assert_eq!(file.read(), Deadline::PASSED);
        file.write(Deadline::at(77)).unwrap();
        assert_eq!(DeadlineFile::new(&path, "one").read(), Deadline::at(77));
        assert_eq!(DeadlineFile::new(&path, "two").read(), Deadline::PASSED);
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn what_is_damaged_says_nothing() {
        let path = place("damage");
        for text in [
            "",
            "one 77",
            "one\n",
            "one -1\n",
            "one 77 88\n",
            "one 7x\n",
            "\0\0\0",
            "one 99999999999999999999999\n",
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(
                DeadlineFile::new(&path, "one").read(),
                Deadline::PASSED,
                "{text:?}"
            );
        }
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
