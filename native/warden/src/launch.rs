//! guard: launch.gate. A launch joins the group first and becomes the runtime's launcher then, so that whatever the runtime starts is inside from its
//! first instruction on. In a frozen group it gets no further than the first of the two, and goes on when the group is let go.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Does not return when it succeeds.
pub fn launch(procs: &Path, program: &OsString, arguments: &[OsString]) -> io::Error {
    match join(procs) {
        Ok(()) => Command::new(program).args(arguments).exec(),
        Err(cause) => io::Error::new(cause.kind(), format!("{}: {cause}", procs.display())),
    }
}

fn join(procs: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).open(procs)?.write_all(b"0")
}
