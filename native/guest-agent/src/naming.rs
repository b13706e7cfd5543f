//! The sandbox's own names: hostname, machine id, and the files that repeat them.
//!
//! A pool member is booted before it is anybody's, so its hostname is set at the claim. That takes `CAP_SYS_ADMIN` (of
//! gVisor's own kernel, never of the host's), which nothing a tenant runs may ever have. So the right leaves the bounding
//! set before there is any other thread, and one thread keeps it: it waits for one name, sets it, and ends. Every other
//! thread of the agent, and so every process, is born without it. Rejected: dropping it when the identity is taken,
//! because rights belong to threads, and each of a dozen would have to drop its own.

use std::fs;
use std::io;
use std::sync::Mutex;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use crate::errors::{GuestError, Outcome};
use crate::limits::THREAD_STACK_BYTES;
use crate::random;
use crate::sync::LockAnyway;

const CAP_SYS_ADMIN: u32 = 21;
const CAPABILITY_VERSION_3: u32 = 0x2008_0522;
const HOSTS: &str = "/etc/hosts";

/// The way to the one thread that may set the hostname; empty once used, and where this is not PID 1.
#[derive(Debug, Default)]
pub struct Herald(Mutex<Option<(Sender<String>, JoinHandle<()>)>>);

impl Herald {
    /// Called before any other thread exists. Fails rather than leave the right to what runs later.
    pub fn appoint() -> io::Result<Self> {
        if !is_init() {
            return Ok(Self::default());
        }
        leave_bounding_set()?;
        let (sender, names) = mpsc::channel::<String>();
        let thread = thread::Builder::new()
            .name("herald".to_owned())
            .stack_size(THREAD_STACK_BYTES)
            .spawn(move || {
                if let Ok(name) = names.recv() {
                    // SAFETY: pointer and length are those of a live string.
                    unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) };
                }
            })?;
        give_up()?;
        Ok(Self(Mutex::new(Some((sender, thread)))))
    }

    /// Makes `hostname` the sandbox's, once; without one, nobody can any more. Blocks for a moment.
    pub fn name(&self, hostname: Option<&str>) -> Outcome<()> {
        // Elsewhere the names are the machine's.
        if !is_init() {
            return Ok(());
        }
        if let Some((sender, thread)) = self.0.locked().take() {
            if let Some(hostname) = hostname {
                let _ = sender.send(hostname.to_owned());
            }
            drop(sender);
            let _ = thread.join();
        }
        let Some(hostname) = hostname else {
            return Ok(());
        };
        // Whether it worked is asked of the kernel: a cold start had the name from its beginning.
        if fs::read_to_string("/proc/sys/kernel/hostname").is_ok_and(|name| name.trim() == hostname) {
            repeat(hostname);
            return Ok(());
        }
        Err(GuestError::internal(
            "The hostname could not be set; end this sandbox and start another.",
        ))
    }
}

/// A template's machine id would be that of all its sandboxes.
pub fn renew_machine_id() -> io::Result<()> {
    if !is_init() {
        return Ok(());
    }
    // A root file system without the directory has nobody who reads it.
    let _ = fs::write("/etc/machine-id", format!("{}\n", random::hex_id()?));
    Ok(())
}

/// For programs that read files instead of asking the kernel, and so that the name leads somewhere.
fn repeat(hostname: &str) {
    let _ = fs::write("/etc/hostname", format!("{hostname}\n"));
    let hosts = fs::read_to_string(HOSTS).unwrap_or_default();
    let known = hosts
        .lines()
        .any(|line| line.split_ascii_whitespace().skip(1).any(|name| name == hostname));
    if !known {
        let _ = fs::write(HOSTS, format!("{}\n127.0.1.1\t{hostname}\n", hosts.trim_end()));
    }
}

fn is_init() -> bool {
    std::process::id() == 1
}

/// What is executed later gets at most what is in this set.
fn leave_bounding_set() -> io::Result<()> {
    // SAFETY: plain calls. Without the right to drop there may be nothing to drop; the look decides.
    let left = unsafe {
        libc::prctl(libc::PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0);
        libc::prctl(libc::PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0)
    };
    if left == 0 {
        Ok(())
    } else {
        Err(io::Error::other(
            "CAP_SYS_ADMIN stays in the bounding set; start the agent with CAP_SETPCAP",
        ))
    }
}

/// Of this thread, and so of all that it starts.
fn give_up() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    #[derive(Default, Clone, Copy)]
    struct Half {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let mut header = Header {
        version: CAPABILITY_VERSION_3,
        pid: 0,
    };
    let mut halves = [Half::default(); 2];
    // SAFETY: both pointers are to plain data of the layout that the version names.
    unsafe {
        if libc::syscall(libc::SYS_capget, &raw mut header, halves.as_mut_ptr()) < 0 {
            return Err(io::Error::last_os_error());
        }
        let [low, _] = &mut halves;
        for set in [&mut low.effective, &mut low.permitted, &mut low.inheritable] {
            *set &= !(1 << CAP_SYS_ADMIN);
        }
        if libc::syscall(libc::SYS_capset, &raw mut header, halves.as_ptr()) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
