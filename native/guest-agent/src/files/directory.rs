//! An open directory, and calls relative to it.
//!
//! Work below a directory goes through its descriptor, never again through its path: a directory that is swapped
//! for a link in the middle leads nothing astray.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Directory(OwnedFd);

/// What a directory entry is, links not followed.
pub type Status = libc::stat;

impl Directory {
    /// Opens by path, following links.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = c_path(path)?;
        open_at(libc::AT_FDCWD, &path, libc::O_RDONLY | libc::O_DIRECTORY, 0).map(Self)
    }

    /// Opens by path for calls relative to it only, which needs no right to list it.
    pub fn locate(path: &Path) -> io::Result<Self> {
        let path = c_path(path)?;
        open_at(libc::AT_FDCWD, &path, libc::O_PATH | libc::O_DIRECTORY, 0).map(Self)
    }

    /// Opens a directory in this one; a link is refused with ELOOP, anything else with ENOTDIR.
    ///
    /// Without `O_DIRECTORY`: gVisor follows a last link where both that and `O_NOFOLLOW` are given. The look before
    /// keeps devices from being opened, the look after is the one that counts.
    pub fn open_child(&self, name: &CStr) -> io::Result<Self> {
        only_directory(&self.status(name)?)?;
        let fd = open_at(
            self.raw(),
            name,
            libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK,
            0,
        )?;
        only_directory(&status_of(&fd)?)?;
        Ok(Self(fd))
    }

    pub fn open_file(&self, name: &CStr, flags: libc::c_int, mode: libc::mode_t) -> io::Result<File> {
        open_at(self.raw(), name, flags | libc::O_NOFOLLOW, mode).map(File::from)
    }

    pub fn status(&self, name: &CStr) -> io::Result<Status> {
        // SAFETY: the structure is plain data that the call fills in.
        unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            check(libc::fstatat(
                self.raw(),
                name.as_ptr(),
                &raw mut status,
                libc::AT_SYMLINK_NOFOLLOW,
            ))?;
            Ok(status)
        }
    }

    pub fn own_status(&self) -> io::Result<Status> {
        status_of(&self.0)
    }

    pub fn make_directory(&self, name: &CStr, mode: libc::mode_t) -> io::Result<()> {
        // SAFETY: a plain call with a live string.
        unsafe { check(libc::mkdirat(self.raw(), name.as_ptr(), mode)) }
    }

    pub fn make_link(&self, name: &CStr, target: &CStr) -> io::Result<()> {
        // SAFETY: a plain call with live strings.
        unsafe { check(libc::symlinkat(target.as_ptr(), self.raw(), name.as_ptr())) }
    }

    pub fn read_link(&self, name: &CStr) -> io::Result<CString> {
        let mut buffer = vec![0_u8; crate::limits::PATH_MAX_BYTES + 1];
        // SAFETY: pointer and length are those of a live buffer.
        let got = unsafe {
            libc::readlinkat(
                self.raw(),
                name.as_ptr(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
            )
        };
        let length = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        buffer.truncate(length);
        CString::new(buffer).map_err(io::Error::other)
    }

    pub fn remove_file(&self, name: &CStr) -> io::Result<()> {
        // SAFETY: a plain call with a live string.
        unsafe { check(libc::unlinkat(self.raw(), name.as_ptr(), 0)) }
    }

    pub fn remove_directory(&self, name: &CStr) -> io::Result<()> {
        // SAFETY: a plain call with a live string.
        unsafe { check(libc::unlinkat(self.raw(), name.as_ptr(), libc::AT_REMOVEDIR)) }
    }

    /// Gives `name` of this directory another name in `to`.
    pub fn rename(&self, name: &CStr, to: &Self, new_name: &CStr, replace: bool) -> io::Result<()> {
        let flags = if replace { 0 } else { libc::RENAME_NOREPLACE };
        // SAFETY: a plain call with live strings.
        let renamed = unsafe {
            check(syscall_int(libc::syscall(
                libc::SYS_renameat2,
                self.raw(),
                name.as_ptr(),
                to.raw(),
                new_name.as_ptr(),
                flags,
            )))
        };
        match renamed {
            Err(error) if !replace && matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) => {
                self.link_then_remove(name, to, new_name)
            }
            other => other,
        }
    }

    /// The same promise on file systems that cannot refuse to replace.
    fn link_then_remove(&self, name: &CStr, to: &Self, new_name: &CStr) -> io::Result<()> {
        self.link(name, to, new_name)?;
        self.remove_file(name)
    }

    pub fn link(&self, name: &CStr, to: &Self, new_name: &CStr) -> io::Result<()> {
        // SAFETY: a plain call with live strings.
        unsafe {
            check(libc::linkat(
                self.raw(),
                name.as_ptr(),
                to.raw(),
                new_name.as_ptr(),
                0,
            ))
        }
    }

    /// Owner of an entry itself, links not followed.
    pub fn set_owner(&self, name: &CStr, uid: libc::uid_t, gid: libc::gid_t) -> io::Result<()> {
        // SAFETY: a plain call with a live string.
        unsafe {
            check(libc::fchownat(
                self.raw(),
                name.as_ptr(),
                uid,
                gid,
                libc::AT_SYMLINK_NOFOLLOW,
            ))
        }
    }

    /// Mode of an entry that is not a link.
    pub fn set_mode(&self, name: &CStr, mode: libc::mode_t) -> io::Result<()> {
        // SAFETY: a plain call with a live string.
        unsafe { check(libc::fchmodat(self.raw(), name.as_ptr(), mode, 0)) }
    }

    /// Times of an entry itself, links not followed.
    pub fn set_modified(&self, name: &CStr, seconds: i64, nanoseconds: i64) -> io::Result<()> {
        let time = libc::timespec {
            tv_sec: seconds,
            tv_nsec: nanoseconds,
        };
        let times = [time, time];
        // SAFETY: two times, as the call wants.
        unsafe {
            check(libc::utimensat(
                self.raw(),
                name.as_ptr(),
                times.as_ptr(),
                libc::AT_SYMLINK_NOFOLLOW,
            ))
        }
    }

    /// Names in this directory, without `.` and `..`, in the order the file system has them.
    pub fn entries(&self) -> io::Result<Entries> {
        // A duplicate would share the position, so the directory is opened once more.
        let fd = open_at(self.raw(), c".", libc::O_RDONLY | libc::O_DIRECTORY, 0)?;
        Ok(Entries {
            fd,
            buffer: vec![0; ENTRIES_BUFFER_BYTES],
            filled: 0,
            at: 0,
        })
    }

    /// The same directory again.
    pub fn reopen(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Where it really is.
    pub fn real_path(&self) -> io::Result<PathBuf> {
        std::fs::read_link(format!("/proc/self/fd/{}", self.raw()))
    }

    fn raw(&self) -> libc::c_int {
        self.0.as_raw_fd()
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

const ENTRIES_BUFFER_BYTES: usize = 16 << 10;
/// Of a `linux_dirent64`: length at 16, name at 19.
const RECORD_LENGTH_AT: usize = 16;
const RECORD_NAME_AT: usize = 19;

/// Reads a directory a buffer at a time, whatever its size.
#[derive(Debug)]
pub struct Entries {
    fd: OwnedFd,
    buffer: Vec<u8>,
    filled: usize,
    at: usize,
}

impl Iterator for Entries {
    type Item = io::Result<CString>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.at >= self.filled {
                // SAFETY: pointer and length are those of a live buffer.
                let got = unsafe {
                    libc::syscall(
                        libc::SYS_getdents64,
                        self.fd.as_raw_fd(),
                        self.buffer.as_mut_ptr(),
                        self.buffer.len(),
                    )
                };
                match usize::try_from(got) {
                    Ok(0) => return None,
                    Ok(filled) => (self.filled, self.at) = (filled, 0),
                    Err(_) => return Some(Err(io::Error::last_os_error())),
                }
            }
            let record = self.buffer.get(self.at..self.filled).unwrap_or_default();
            let length = record
                .get(RECORD_LENGTH_AT..)
                .and_then(|rest| rest.first_chunk::<2>())
                .map_or(0, |bytes| usize::from(u16::from_ne_bytes(*bytes)));
            let name = record
                .get(RECORD_NAME_AT..length)
                .and_then(|rest| CStr::from_bytes_until_nul(rest).ok());
            let Some(name) = name else {
                return Some(Err(io::Error::other("a directory entry is malformed")));
            };
            self.at += length;
            if !matches!(name.to_bytes(), b"." | b"..") {
                return Some(Ok(name.to_owned()));
            }
        }
    }
}

fn only_directory(status: &Status) -> io::Result<()> {
    match kind(status) {
        libc::S_IFDIR => Ok(()),
        libc::S_IFLNK => Err(io::Error::from_raw_os_error(libc::ELOOP)),
        _ => Err(io::Error::from_raw_os_error(libc::ENOTDIR)),
    }
}

pub fn kind(status: &Status) -> libc::mode_t {
    status.st_mode & libc::S_IFMT
}

pub fn permissions(status: &Status) -> libc::mode_t {
    status.st_mode & 0o7777
}

pub fn status_of(file: &impl AsRawFd) -> io::Result<Status> {
    // SAFETY: the structure is plain data that the call fills in.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        check(libc::fstat(file.as_raw_fd(), &raw mut status))?;
        Ok(status)
    }
}

/// By path; `follow` looks at what a link points to.
pub fn status_at(path: &Path, follow: bool) -> io::Result<Status> {
    let path = c_path(path)?;
    // SAFETY: the structure is plain data that the call fills in.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        let flags = if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
        check(libc::fstatat(
            libc::AT_FDCWD,
            path.as_ptr(),
            &raw mut status,
            flags,
        ))?;
        Ok(status)
    }
}

pub fn os_str(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

pub fn set_file_modified(file: &File, seconds: i64) -> io::Result<()> {
    let time = libc::timespec {
        tv_sec: seconds,
        tv_nsec: 0,
    };
    let times = [time, time];
    // SAFETY: two times, as the call wants.
    unsafe { check(libc::futimens(file.as_raw_fd(), times.as_ptr())) }
}

pub fn name_of(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}

pub fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

fn open_at(at: libc::c_int, name: &CStr, flags: libc::c_int, mode: libc::mode_t) -> io::Result<OwnedFd> {
    // SAFETY: a plain call with a live string; a descriptor it returns has no other owner.
    unsafe {
        let fd = libc::openat(at, name.as_ptr(), flags | libc::O_CLOEXEC | libc::O_NOCTTY, mode);
        check(fd)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

fn syscall_int(result: libc::c_long) -> libc::c_int {
    libc::c_int::try_from(result).unwrap_or(-1)
}
