//! Locks that outlive a panic.
//!
//! A panic ends one request, never the agent, so a lock it held must stay usable. Every critical section here
//! leaves its data whole at each step: they assign counters and push to buffers, and none calls out.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub trait LockAnyway<T> {
    fn locked(&self) -> MutexGuard<'_, T>;
}

impl<T> LockAnyway<T> for Mutex<T> {
    fn locked(&self) -> MutexGuard<'_, T> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
