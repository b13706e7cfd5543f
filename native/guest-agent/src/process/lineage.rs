//! Which processes belong to the tree of one leader.
//!
//! Parents alone do not tell: a daemon's parent is PID 1. A member is whoever is in the process's control group
//! (see `group`), in the leader's session or process group, or carries the marker in its environment, and every
//! descendant of one of these. The last three stand alone where there are no groups; then a program that leaves
//! session, group, parent and environment behind at once escapes.
//! A subreaper per process was measured to double the cost of an exec, so it is not used.

use std::collections::{HashMap, HashSet};

use super::environment::MARKER;
use super::group;
use super::record::Facts;
use super::scan::{self, ProcessLine};
use super::view::Usage;

/// One look at the whole sandbox, good for any number of trees.
pub struct Snapshot {
    lines: Vec<ProcessLine>,
    markers: HashMap<i32, Vec<u8>>,
}

impl Snapshot {
    pub fn take() -> Self {
        let agent = own_pid();
        let mut lines = scan::all();
        lines.retain(|line| line.pid != agent && line.pid > 1 && !line.is_dead());
        let marker = |line: &ProcessLine| Some((line.pid, scan::environment_value(line.pid, MARKER)?));
        let markers = lines.iter().filter_map(marker).collect();
        Self { lines, markers }
    }

    /// Live members of one tree.
    pub fn members(&self, facts: &Facts, leader_lives: bool) -> Vec<ProcessLine> {
        let grouped: HashSet<i32> = facts
            .group
            .as_deref()
            .map(group::members)
            .unwrap_or_default()
            .into_iter()
            .collect();
        let marked = |pid: i32| {
            self.markers
                .get(&pid)
                .is_some_and(|value| value == facts.id.as_bytes())
        };
        select(&self.lines, facts.pid, leader_lives, |pid| {
            grouped.contains(&pid) || marked(pid)
        })
    }
}

pub fn usage(members: &[ProcessLine]) -> Usage {
    // SAFETY: sysconf only reads constants of the system.
    let (ticks, page) = unsafe {
        (
            libc::sysconf(libc::_SC_CLK_TCK),
            libc::sysconf(libc::_SC_PAGESIZE),
        )
    };
    let ticks = u64::try_from(ticks)
        .ok()
        .filter(|ticks| *ticks > 0)
        .unwrap_or(100);
    let page = u64::try_from(page).unwrap_or(4096);
    Usage {
        cpu_ms: members.iter().map(|line| line.cpu_ticks * 1000 / ticks).sum(),
        memory_bytes: members.iter().map(|line| line.resident_pages * page).sum(),
    }
}

pub fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(1)
}

fn select(
    lines: &[ProcessLine],
    leader: i32,
    leader_lives: bool,
    known: impl Fn(i32) -> bool,
) -> Vec<ProcessLine> {
    let seed = |line: &&ProcessLine| {
        // A leader that was reaped left its number behind for anybody.
        let named = (line.pid == leader && leader_lives)
            || (line.pid != leader && (line.session == leader || line.group == leader));
        named || known(line.pid)
    };
    let mut members: HashSet<i32> = lines.iter().filter(seed).map(|line| line.pid).collect();
    loop {
        let before = members.len();
        let children: Vec<i32> = lines
            .iter()
            .filter(|line| members.contains(&line.parent))
            .map(|line| line.pid)
            .collect();
        members.extend(children);
        if members.len() == before {
            break;
        }
    }
    lines
        .iter()
        .copied()
        .filter(|line| members.contains(&line.pid))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::select;
    use crate::process::scan::ProcessLine;

    fn line(pid: i32, parent: i32, session: i32) -> ProcessLine {
        ProcessLine {
            pid,
            state: 'S',
            parent,
            group: pid,
            session,
            cpu_ticks: 0,
            resident_pages: 0,
        }
    }

    fn pids(lines: &[ProcessLine], leader_lives: bool, known: &[i32]) -> Vec<i32> {
        select(lines, 10, leader_lives, |pid| known.contains(&pid))
            .iter()
            .map(|line| line.pid)
            .collect()
    }

    #[test]
    fn finds_session_descendants_and_known_daemons() {
        let lines = [
            line(10, 1, 10),
            line(11, 10, 10),
            line(12, 11, 12),
            line(13, 1, 13),
            line(14, 13, 14),
            line(15, 1, 10),
            line(20, 1, 20),
        ];
        assert_eq!(pids(&lines, true, &[13]), [10, 11, 12, 13, 14, 15]);
        assert_eq!(
            pids(&lines[..1], false, &[]),
            [0; 0],
            "a reaped leader's number may be somebody else's"
        );
    }
}
