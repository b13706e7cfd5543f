//! What makes the warden the last one to be hit when the machine is short of memory or of CPUs. Each where it is permitted: a warden without it is
//! better than none.

use std::fs;

const FIRST_IN_LINE: libc::c_int = -20;

/// What is not permitted here, for the log.
pub fn take() -> Vec<&'static str> {
    let mut refused = Vec::new();
    // SAFETY: takes and touches no memory. Only pages that have been touched stay: all of them would be more than the whole warden uses.
    if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) } != 0 {
        refused.push("mlockall");
    }
    if fs::write("/proc/self/oom_score_adj", "-1000").is_err() {
        refused.push("oom_score_adj");
    }
    // SAFETY: takes and touches no memory.
    if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, FIRST_IN_LINE) } != 0 {
        refused.push("nice");
    }
    refused
}
