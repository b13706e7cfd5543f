//! One clock: `CLOCK_BOOTTIME`. It never steps, and it goes on while the machine sleeps, as the clocks of those who fence this host do. Under
//! `CLOCK_MONOTONIC` a laptop that wakes up would have all of its deadline still ahead.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

pub const NS_PER_MS: u64 = 1_000_000;
const NS_PER_S: u64 = 1_000_000_000;

/// Nanoseconds since the machine was booted.
pub fn now_ns() -> io::Result<u64> {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a timespec that lives through the call.
    if unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Ok(seconds * NS_PER_S + u64::try_from(now.tv_nsec).unwrap_or(0))
}

/// Becomes readable at a moment of that clock.
pub struct Timer {
    descriptor: OwnedFd,
}

impl Timer {
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory is passed.
        let descriptor =
            unsafe { libc::timerfd_create(libc::CLOCK_BOOTTIME, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor has just been made and nobody else has it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(Self { descriptor })
    }

    /// `None`: never. A moment that has passed fires at once. Whatever has fired before is forgotten.
    pub fn set(&self, at_ns: Option<u64>) -> io::Result<()> {
        // All zeros would mean never.
        let at = at_ns.map_or(0, |ns| ns.max(1));
        let spec = libc::itimerspec {
            it_interval: libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: libc::timespec {
                tv_sec: libc::time_t::try_from(at / NS_PER_S).unwrap_or(libc::time_t::MAX),
                tv_nsec: libc::c_long::try_from(at % NS_PER_S).unwrap_or(0),
            },
        };
        // SAFETY: `spec` lives through the call, and no old value is asked for.
        let result = unsafe {
            libc::timerfd_settime(
                self.raw(),
                libc::TFD_TIMER_ABSTIME,
                &raw const spec,
                std::ptr::null_mut(),
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    pub fn raw(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_forward() {
        let first = now_ns().unwrap();
        assert!(first > 0 && now_ns().unwrap() >= first);
    }

    #[test]
    fn a_moment_that_has_passed_fires_at_once_and_none_does_not() {
        let timer = Timer::new().unwrap();
        timer.set(Some(0)).unwrap();
        assert!(crate::readiness::wait(&[timer.raw()], Some(1_000)).unwrap()[0]);
        timer.set(None).unwrap();
        assert!(!crate::readiness::wait(&[timer.raw()], Some(0)).unwrap()[0]);
    }
}
