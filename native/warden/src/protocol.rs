//! What is said on the warden's socket: lines of ASCII, each answered by one. Pure.
//!
//! | line | answer |
//! | --- | --- |
//! | `state` | `state VERSION NOW_NS DEADLINE_NS open\|frozen PID` |
//! | `sent SENT_NS FOR_MS`: a renewal that was sent at that moment was answered | the same, or `refused WORD` |
//! | `end`: nothing runs any more, and nothing will | `ending`, or `refused populated` |
//!
//! A line `changed …`, otherwise the same as `state …`, comes unasked when the group was frozen or let go. The sender takes `SENT_NS` from `NOW_NS` of a `state` that it asked for
//! before it sent: it needs no clock of its own. Anything else ends the connection and changes nothing.

use crate::deadline::Deadline;

pub const VERSION: u32 = 1;
pub const STATE: &str = "state";
pub const CHANGED: &str = "changed";
pub const LONGEST_LINE: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    State,
    Sent { sent_ns: u64, for_ms: u64 },
    End,
}

/// `None`: not of this protocol.
pub fn parse(line: &[u8]) -> Option<Request> {
    let text = std::str::from_utf8(line).ok()?;
    let mut words = text.split(' ');
    let request = match words.next()? {
        "state" => Request::State,
        "sent" => Request::Sent {
            sent_ns: number(words.next()?)?,
            for_ms: number(words.next()?)?,
        },
        "end" => Request::End,
        _ => return None,
    };
    words.next().is_none().then_some(request)
}

/// Digits alone: `parse` of the standard library takes a sign too.
fn number(word: &str) -> Option<u64> {
    if word.bytes().all(|byte| byte.is_ascii_digit()) {
        word.parse().ok()
    } else {
        None
    }
}

pub fn state_line(word: &str, now_ns: u64, deadline: Deadline, frozen: bool) -> String {
    let state = if frozen { "frozen" } else { "open" };
    format!(
        "{word} {VERSION} {now_ns} {} {state} {}\n",
        deadline.at_ns(),
        std::process::id()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_its_own_lines() {
        assert_eq!(parse(b"state"), Some(Request::State));
        assert_eq!(parse(b"end"), Some(Request::End));
        assert_eq!(
            parse(b"sent 12 34"),
            Some(Request::Sent {
                sent_ns: 12,
                for_ms: 34
            })
        );
        assert_eq!(
            parse(b"sent 18446744073709551615 0"),
            Some(Request::Sent {
                sent_ns: u64::MAX,
                for_ms: 0
            })
        );
    }

    #[test]
    fn takes_nothing_else() {
        let wrong: [&[u8]; 14] = [
            b"",
            b" state",
            b"state ",
            b"STATE",
            b"sent",
            b"sent 1",
            b"sent 1 2 3",
            b"sent 1  2",
            b"sent +1 2",
            b"sent -1 2",
            b"sent 18446744073709551616 1",
            b"sent 1e3 2",
            b"end now",
            b"\xff\xfe",
        ];
        for line in wrong {
            assert_eq!(parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn lines_of_any_bytes_never_panic() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..20_000 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let length = (seed >> 58) as usize;
            let line: Vec<u8> = seed.to_ne_bytes().into_iter().cycle().take(length).collect();
            let _ = parse(&line);
        }
    }
}
