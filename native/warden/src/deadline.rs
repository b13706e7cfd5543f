//! Until when sandboxes may run. Pure.

use crate::clock::NS_PER_MS;

/// No renewal is good for longer, whatever a message says.
pub const LONGEST_MS: u64 = 120_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    at_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody can have sent anything later than now.
    SentLater,
    TooLong,
}

impl Refusal {
    pub fn word(self) -> &'static str {
        match self {
            Self::SentLater => "sent_later_than_now",
            Self::TooLong => "longer_than_a_lease",
        }
    }
}

impl Deadline {
    /// Long ago: nothing may run.
    pub const PASSED: Self = Self { at_ns: 0 };

    pub fn at(at_ns: u64) -> Self {
        Self { at_ns }
    }

    /// As it was found on disk: what lies further ahead than any renewal can bring it is damaged, or of another clock, and is none.
    pub fn as_found(self, now_ns: u64) -> Self {
        if self.at_ns > now_ns.saturating_add(LONGEST_MS * NS_PER_MS) {
            Self::PASSED
        } else {
            self
        }
    }

    pub fn at_ns(self) -> u64 {
        self.at_ns
    }

    pub fn has_passed(self, now_ns: u64) -> bool {
        now_ns >= self.at_ns
    }

    /// guard: renew.sent. Counts from the moment at which the renewal was sent: those who fence count from no earlier one. guard: restart.deadline.
    /// It only moves forward, so a message that is late, or comes again, changes nothing.
    pub fn renewed(self, now_ns: u64, sent_ns: u64, for_ms: u64) -> Result<Self, Refusal> {
        if for_ms > LONGEST_MS {
            return Err(Refusal::TooLong);
        }
        if sent_ns > now_ns {
            return Err(Refusal::SentLater);
        }
        Ok(Self {
            at_ns: self.at_ns.max(sent_ns.saturating_add(for_ms * NS_PER_MS)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000 * NS_PER_MS;

    #[test]
    fn counts_from_the_moment_of_sending() {
        assert_eq!(
            Deadline::PASSED.renewed(100 * S, 90 * S, 25_000),
            Ok(Deadline::at(115 * S))
        );
    }

    #[test]
    fn only_moves_forward() {
        let deadline = Deadline::at(115 * S);
        assert_eq!(deadline.renewed(110 * S, 80 * S, 25_000), Ok(deadline));
        assert_eq!(deadline.renewed(110 * S, 90 * S, 25_000), Ok(deadline));
        assert_eq!(deadline.renewed(110 * S, 110 * S, 0), Ok(deadline));
    }

    #[test]
    fn believes_no_moment_that_has_not_come_and_no_lease_without_end() {
        let deadline = Deadline::at(5 * S);
        assert_eq!(deadline.renewed(10 * S, 10 * S + 1, 1), Err(Refusal::SentLater));
        assert_eq!(
            deadline.renewed(10 * S, 10 * S, LONGEST_MS + 1),
            Err(Refusal::TooLong)
        );
        assert_eq!(
            deadline.renewed(u64::MAX, u64::MAX, LONGEST_MS),
            Ok(Deadline::at(u64::MAX))
        );
    }

    #[test]
    fn is_none_when_it_was_found_further_ahead_than_any_renewal() {
        let longest = Deadline::at(10 * S + LONGEST_MS * NS_PER_MS);
        assert_eq!(longest.as_found(10 * S), longest);
        assert_eq!(longest.as_found(10 * S - 1), Deadline::PASSED);
        assert_eq!(Deadline::at(u64::MAX).as_found(10 * S), Deadline::PASSED);
        assert_eq!(Deadline::at(S).as_found(10 * S), Deadline::at(S));
    }

    #[test]
    fn has_passed_at_its_own_moment() {
        assert!(Deadline::at(5).has_passed(5));
        assert!(!Deadline::at(5).has_passed(4));
    }
}
