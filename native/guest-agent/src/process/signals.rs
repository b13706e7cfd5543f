//! Signal names, without `SIG`, as clients send and read them.

use serde::Deserialize;

use crate::errors::{GuestError, Outcome};

const NAMES: [(i32, &str); 31] = [
    (libc::SIGHUP, "HUP"),
    (libc::SIGINT, "INT"),
    (libc::SIGQUIT, "QUIT"),
    (libc::SIGILL, "ILL"),
    (libc::SIGTRAP, "TRAP"),
    (libc::SIGABRT, "ABRT"),
    (libc::SIGBUS, "BUS"),
    (libc::SIGFPE, "FPE"),
    (libc::SIGKILL, "KILL"),
    (libc::SIGUSR1, "USR1"),
    (libc::SIGSEGV, "SEGV"),
    (libc::SIGUSR2, "USR2"),
    (libc::SIGPIPE, "PIPE"),
    (libc::SIGALRM, "ALRM"),
    (libc::SIGTERM, "TERM"),
    (libc::SIGSTKFLT, "STKFLT"),
    (libc::SIGCHLD, "CHLD"),
    (libc::SIGCONT, "CONT"),
    (libc::SIGSTOP, "STOP"),
    (libc::SIGTSTP, "TSTP"),
    (libc::SIGTTIN, "TTIN"),
    (libc::SIGTTOU, "TTOU"),
    (libc::SIGURG, "URG"),
    (libc::SIGXCPU, "XCPU"),
    (libc::SIGXFSZ, "XFSZ"),
    (libc::SIGVTALRM, "VTALRM"),
    (libc::SIGPROF, "PROF"),
    (libc::SIGWINCH, "WINCH"),
    (libc::SIGIO, "IO"),
    (libc::SIGPWR, "PWR"),
    (libc::SIGSYS, "SYS"),
];
const SIGNAL_MAX: i32 = 64;

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum SignalName {
    Number(i32),
    Name(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignalBody {
    pub signal: SignalName,
    #[serde(default = "yes")]
    pub tree: bool,
}

fn yes() -> bool {
    true
}

impl SignalName {
    pub fn number(&self) -> Outcome<i32> {
        let known = match self {
            Self::Number(number) => Some(*number).filter(|number| (1..=SIGNAL_MAX).contains(number)),
            Self::Name(wanted) => NAMES
                .iter()
                .find(|(_, name)| name == wanted)
                .map(|(number, _)| *number),
        };
        known.ok_or_else(|| {
            GuestError::invalid("signal must be a name such as TERM, or a number from 1 to 64.")
        })
    }
}

pub fn name(number: i32) -> String {
    NAMES
        .iter()
        .find(|(candidate, _)| *candidate == number)
        .map_or_else(|| number.to_string(), |(_, name)| (*name).to_owned())
}
