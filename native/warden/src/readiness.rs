//! Waiting for descriptors.

use std::io;
use std::os::fd::RawFd;

/// Which of them can be read, or have ended. `None`: waits for as long as it takes.
pub fn wait(descriptors: &[RawFd], timeout_ms: Option<u32>) -> io::Result<Vec<bool>> {
    let mut polled: Vec<libc::pollfd> = descriptors
        .iter()
        .map(|&fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let timeout = timeout_ms.map_or(-1, |ms| libc::c_int::try_from(ms).unwrap_or(libc::c_int::MAX));
    // SAFETY: `polled` holds as many entries as are told, and lives through the call.
    let result = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout) };
    if result < 0 {
        let cause = io::Error::last_os_error();
        if cause.kind() != io::ErrorKind::Interrupted {
            return Err(cause);
        }
        return Ok(vec![false; descriptors.len()]);
    }
    Ok(polled.iter().map(|entry| entry.revents != 0).collect())
}
