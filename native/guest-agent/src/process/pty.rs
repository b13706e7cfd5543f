//! Pseudo terminals: made with their size set, owned by the user, before anything runs on them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use super::start_request::TerminalSize;
use crate::users::User;

pub struct Terminal {
    pub master: OwnedFd,
    pub slave: OwnedFd,
}

/// `^D`, what a terminal's VEOF is unless a program changed it.
const END_OF_FILE: u8 = 4;
const OWNER_AND_GROUP_WRITE: libc::mode_t = 0o620;

pub fn open(size: TerminalSize, user: &User) -> io::Result<Terminal> {
    let master = open_device("/dev/ptmx").or_else(|_| open_device("/dev/pts/ptmx"))?;
    let unlocked: libc::c_int = 0;
    let mut number: libc::c_int = 0;
    // SAFETY: both requests take a pointer to an int that lives through the call.
    unsafe {
        check(libc::ioctl(
            master.as_raw_fd(),
            libc::TIOCSPTLCK,
            &raw const unlocked,
        ))?;
        check(libc::ioctl(master.as_raw_fd(), libc::TIOCGPTN, &raw mut number))?;
    }
    let slave = open_device(&format!("/dev/pts/{number}"))?;
    resize(&master, size)?;
    // SAFETY: plain calls on an open descriptor. Not every kernel keeps owners of terminals; a failure costs only
    // reopening /dev/pts/N by that user.
    unsafe {
        libc::fchown(slave.as_raw_fd(), user.uid, user.gid);
        libc::fchmod(slave.as_raw_fd(), OWNER_AND_GROUP_WRITE);
    }
    set_utf8(&slave);
    super::spawn::set_nonblocking(&master)?;
    Ok(Terminal {
        master: master.into(),
        slave: slave.into(),
    })
}

pub fn resize(master: &impl AsRawFd, size: TerminalSize) -> io::Result<()> {
    let size = libc::winsize {
        ws_row: size.rows,
        ws_col: size.cols,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the request takes a pointer to a winsize.
    check(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) })
}

/// The byte that ends input on this terminal.
pub fn end_of_file(master: &impl AsRawFd) -> u8 {
    attributes(master)
        .and_then(|termios| termios.c_cc.get(libc::VEOF).copied())
        .unwrap_or(END_OF_FILE)
}

fn attributes(terminal: &impl AsRawFd) -> Option<libc::termios> {
    // SAFETY: termios is plain data that the call fills in.
    unsafe {
        let mut termios: libc::termios = std::mem::zeroed();
        (libc::tcgetattr(terminal.as_raw_fd(), &raw mut termios) == 0).then_some(termios)
    }
}

/// Lets the line editor of the kernel erase whole characters.
fn set_utf8(slave: &File) {
    if let Some(mut termios) = attributes(slave) {
        termios.c_iflag |= libc::IUTF8;
        // SAFETY: the structure came from the same terminal.
        unsafe {
            libc::tcsetattr(slave.as_raw_fd(), libc::TCSANOW, &raw const termios);
        }
    }
}

fn open_device(path: &str) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOCTTY | libc::O_CLOEXEC)
        .open(path)
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
