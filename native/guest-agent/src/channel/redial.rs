//! How long to wait before the channel is dialled again.

use std::time::Duration;

use crate::limits::{REDIAL_DELAY, REDIAL_DELAY_MAX};

/// Doubles while nobody answers: a host that comes back is dialled by all of its sandboxes, and must have room to start.
pub struct Redial {
    next: Duration,
}

impl Redial {
    pub fn new() -> Self {
        Self { next: REDIAL_DELAY }
    }

    /// Nobody answered.
    pub fn after_silence(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(REDIAL_DELAY_MAX);
        pause
    }

    /// A session was served and is over: its host may be back at once.
    pub fn after_session(&mut self) -> Duration {
        self.next = REDIAL_DELAY;
        self.after_silence()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_their_bound_and_begin_again_after_a_session() {
        let mut redial = Redial::new();
        let pauses: Vec<u128> = (0..7).map(|_| redial.after_silence().as_millis()).collect();
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1000, 1000]);
        assert_eq!(redial.after_session().as_millis(), 50);
        assert_eq!(redial.after_silence().as_millis(), 100);
    }
}
