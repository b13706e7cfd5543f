//! Walks that may take minutes: a few at a time, given up when the client is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::as_user::run_as;
use crate::agent::Agent;
use crate::errors::{GuestError, Outcome};
use crate::users::User;

/// Tells a walk that nobody waits for it any more.
#[derive(Debug, Clone, Default)]
pub struct GivenUp(Arc<AtomicBool>);

struct GiveUpOnDrop(GivenUp);

impl GivenUp {
    pub fn check(&self) -> Outcome<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(GuestError::internal(
                "The request was cancelled half-way; look at what is there and repeat it.",
            ));
        }
        Ok(())
    }
}

impl Drop for GiveUpOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

pub async fn run_long<T: Send + 'static>(
    agent: &Agent,
    user: Option<String>,
    work: impl FnOnce(&User, &GivenUp) -> Outcome<T> + Send + 'static,
) -> Outcome<T> {
    // The semaphore is never closed.
    let _turn = agent.long_work.acquire().await;
    let given_up = GivenUp::default();
    let _guard = GiveUpOnDrop(given_up.clone());
    run_as(user, move |user| work(user, &given_up)).await
}
