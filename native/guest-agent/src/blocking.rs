//! Work that blocks: file system calls, spawns, looks at `/proc`.
//!
//! It runs on a few threads that exist from boot on (see `boot`), a step at a time, so that nothing slow, not even a
//! client that reads one byte a minute, holds one of them.

use tokio::task::JoinHandle;

use crate::errors::{GuestError, Outcome};

/// Runs `work` on a thread that may block; a panic there becomes an error here.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Outcome<T> + Send + 'static,
) -> Outcome<T> {
    finished(tokio::task::spawn_blocking(work)).await
}

/// The result of such work that was begun before.
pub async fn finished<T>(work: JoinHandle<Outcome<T>>) -> Outcome<T> {
    work.await.unwrap_or_else(|_| {
        Err(GuestError::internal(
            "The work failed inside the agent; try again.",
        ))
    })
}
