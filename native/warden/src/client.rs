//! One connection to the warden's socket. Never waited for: who reads too slowly, or writes what is no line, is cut.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use crate::protocol::{self, LONGEST_LINE, Request};

pub struct Client {
    stream: UnixStream,
    pending: Vec<u8>,
}

impl Client {
    /// `None` for anybody but this process's own user and root.
    pub fn admit(stream: UnixStream) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        let user = peer_user(stream.as_raw_fd())?;
        // SAFETY: takes and touches no memory.
        let own = unsafe { libc::geteuid() };
        (user == 0 || user == own).then(|| Self {
            stream,
            pending: Vec::with_capacity(LONGEST_LINE),
        })
    }

    pub fn raw(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// What it has asked since. `None`: it has gone, or is to go.
    pub fn requests(&mut self) -> Option<Vec<Request>> {
        let mut chunk = [0_u8; 256];
        let read = match self.stream.read(&mut chunk) {
            Ok(0) => return None,
            Ok(read) => read,
            Err(cause) if matches!(cause.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            Err(_) => return None,
        };
        self.pending.extend_from_slice(chunk.get(..read)?);
        let mut requests = Vec::new();
        while let Some(end) = self.pending.iter().position(|&byte| byte == b'\n') {
            let rest = self.pending.split_off(end + 1);
            self.pending.pop();
            requests.push(protocol::parse(&self.pending)?);
            self.pending = rest;
        }
        (self.pending.len() <= LONGEST_LINE).then_some(requests)
    }

    /// False when it does not take it.
    #[must_use]
    pub fn tell(&mut self, line: &str) -> bool {
        matches!(self.stream.write(line.as_bytes()), Ok(written) if written == line.len())
    }
}

fn peer_user(socket: RawFd) -> Option<libc::uid_t> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).ok()?;
    // SAFETY: `peer` has the size that `length` says, and both live through the call.
    let result = unsafe {
        libc::getsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    (result == 0).then_some(peer.uid)
}
