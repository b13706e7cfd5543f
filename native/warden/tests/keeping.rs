//! The binary itself, on a real control group.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use std::fs;
use std::time::Duration;

use support::{Place, wait_for};

const MS: u64 = 1_000_000;
/// From the deadline to the whole group standing still. The protocol allows five seconds.
const PROMPT: u64 = 100 * MS;

#[test]
fn begins_closed_and_opens_with_a_renewal() {
    let mut place = Place::new();
    place.keep();
    place.until_frozen(true);
    let ticker = place.ticker();
    assert!(ticker.stands_still());
    assert_eq!(
        ticker.ticks(),
        0,
        "guard launch.gate: a launch gets no further than the gate"
    );
    let state = place.talk().renew(10_000);
    assert!(!state.frozen && state.deadline_ns > state.now_ns);
    ticker.until_it_ticks();
}

#[test]
fn freezes_within_100_ms_of_the_deadline_and_goes_on_after_a_renewal() {
    let mut place = Place::new();
    place.keep();
    let mut talk = place.talk();
    let deadline = talk.renew(400).deadline_ns;
    let ticker = place.ticker();
    ticker.until_it_ticks();
    assert!(!talk.told().frozen);
    let told = talk.told();
    assert!(told.frozen && told.now_ns >= deadline);
    place.until_frozen(true);
    let late = talk.state().now_ns - deadline;
    assert!(late < PROMPT, "frozen {} ms after the deadline", late / MS);
    assert!(ticker.stands_still());
    talk.renew(10_000);
    ticker.until_it_ticks();
}

#[test]
fn counts_from_the_moment_of_sending() {
    let mut place = Place::new();
    place.keep();
    let mut talk = place.talk();
    let sent = talk.state().now_ns;
    std::thread::sleep(Duration::from_millis(60));
    // The answer took longer than what it is good for.
    let answer = support::state_of(&talk.ask(&format!("sent {sent} 50")));
    assert_eq!(answer.deadline_ns, sent + 50 * MS);
    assert!(answer.frozen);
}

#[test]
fn a_message_that_is_late_or_comes_again_or_from_the_future_moves_nothing() {
    let mut place = Place::new();
    place.keep();
    let mut talk = place.talk();
    let early = talk.state().now_ns;
    let state = talk.renew(20_000);
    for line in [
        format!("sent {early} 20000"),
        format!("sent {early} 1"),
        "sent 0 0".to_owned(),
    ] {
        assert_eq!(
            support::state_of(&talk.ask(&line)).deadline_ns,
            state.deadline_ns,
            "{line}"
        );
    }
    let future = talk.state().now_ns + 3_600_000 * MS;
    assert_eq!(
        talk.ask(&format!("sent {future} 20000")),
        "refused sent_later_than_now"
    );
    assert_eq!(
        talk.ask(&format!("sent {} 3600000", state.now_ns)),
        "refused longer_than_a_lease"
    );
    assert_eq!(talk.state().deadline_ns, state.deadline_ns);
}

#[test]
fn a_warden_that_starts_again_keeps_the_deadline() {
    let mut place = Place::new();
    place.keep();
    let deadline = place.talk().renew(800).deadline_ns;
    let ticker = place.ticker();
    ticker.until_it_ticks();
    place.kill_warden();
    place.keep();
    let state = place.talk().state();
    assert_eq!(state.deadline_ns, deadline);
    assert!(!state.frozen);
    ticker.until_it_ticks();
    place.until_frozen(true);
    assert!(place.talk().state().now_ns - deadline < PROMPT);
    place.kill_warden();
    assert!(
        ticker.stands_still(),
        "what is frozen stays so while no warden runs"
    );
    place.keep();
    assert!(place.talk().state().frozen);
    assert!(ticker.stands_still());
}

#[test]
fn a_deadline_that_passed_while_no_warden_ran_is_obeyed_at_once() {
    let mut place = Place::new();
    place.keep();
    let deadline = place.talk().renew(100).deadline_ns;
    let ticker = place.ticker();
    ticker.until_it_ticks();
    place.kill_warden();
    wait_for("the deadline", || {
        (sandglass_warden::clock::now_ns().unwrap() > deadline).then_some(())
    });
    ticker.until_it_ticks();
    place.keep();
    place.until_frozen(true);
    assert!(ticker.stands_still());
}

#[test]
fn a_file_of_another_boot_or_a_damaged_one_opens_nothing() {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let for_ever = format!("{} 18446744073709551615\n", boot.trim());
    for text in [
        "00000000-0000-0000-0000-000000000000 18446744073709551615\n",
        &for_ever,
        "rubbish",
        "",
    ] {
        let mut place = Place::new();
        fs::create_dir_all(&place.run).unwrap();
        fs::write(place.run.join("deadline"), text).unwrap();
        place.keep();
        let state = place.talk().state();
        assert!(state.frozen && state.deadline_ns == 0, "{text:?}");
    }
}

#[test]
fn what_is_no_line_ends_its_connection_and_nothing_else() {
    let mut place = Place::new();
    place.keep();
    let mut good = place.talk();
    let deadline = good.renew(20_000).deadline_ns;
    let long = vec![b'7'; 4_096];
    let wrong: [&[u8]; 6] = [
        b"\n",
        b"sent 1 2 3\n",
        b"\0\xff\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"state\nnonsense\n",
        &long,
    ];
    for bytes in wrong {
        let mut talk = place.talk();
        talk.send(bytes);
        while !talk.line().is_empty() {}
    }
    // Cut into pieces it is still a line.
    let mut talk = place.talk();
    for piece in [&b"sta"[..], b"te", b"\nst", b"ate\n"] {
        talk.send(piece);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(support::state_of(&talk.line()).deadline_ns, deadline);
    assert_eq!(support::state_of(&talk.line()).deadline_ns, deadline);
    assert_eq!(good.state().deadline_ns, deadline);
}

#[test]
fn those_who_connect_and_never_read_hold_up_nobody() {
    let mut place = Place::new();
    place.keep();
    let mut idle: Vec<_> = (0..20).map(|_| place.talk()).collect();
    for talk in &mut idle {
        for _ in 0..200 {
            talk.send(b"state\n");
        }
    }
    let mut talk = place.talk();
    assert!(!talk.renew(200).frozen);
    place.until_frozen(true);
}

#[test]
fn one_warden_per_installation() {
    let mut place = Place::new();
    let pid = place.keep();
    assert_eq!(place.spawn().wait().unwrap().code(), Some(3));
    assert_eq!(place.talk().state().pid, pid);
}

#[test]
fn ends_only_when_nothing_is_left_to_keep() {
    let mut place = Place::new();
    place.keep();
    place.launch("sleep", &["1000"]);
    let mut talk = place.talk();
    wait_for("the launch", || place.is_populated().then_some(()));
    assert_eq!(talk.ask("end"), "refused populated");
    // Frozen, and killed all the same.
    assert!(place.is_frozen());
    fs::write(place.group.join("cgroup.kill"), "1").unwrap();
    place.wait_launched();
    wait_for("the end", || (talk.ask("end") == "ending").then_some(()));
    assert!(place.warden().wait().unwrap().success());
    assert!(!place.run.exists());
}

#[test]
fn what_a_frozen_group_holds_can_be_killed() {
    let mut place = Place::new();
    place.keep();
    place.talk().renew(200);
    let ticker = place.ticker();
    ticker.until_it_ticks();
    place.until_frozen(true);
    let procs = fs::read_to_string(place.group.join("sandglass-gate/cgroup.procs")).unwrap();
    for pid in procs.lines() {
        // SAFETY: takes and touches no memory.
        unsafe { libc::kill(pid.parse().unwrap(), libc::SIGKILL) };
    }
    place.wait_launched();
    wait_for("an empty group", || (!place.is_populated()).then_some(()));
    assert!(place.is_frozen());
}

#[test]
fn a_group_that_somebody_thawed_or_removed_is_set_right_by_the_next_message() {
    let mut place = Place::new();
    place.keep();
    fs::write(place.group.join("cgroup.freeze"), "0").unwrap();
    place.talk().state();
    place.until_frozen(true);
    fs::remove_dir(place.group.join("sandglass-gate")).unwrap();
    fs::remove_dir(&place.group).unwrap();
    place.talk().state();
    place.until_frozen(true);
    assert!(place.group.join("sandglass-gate").exists());
}

#[test]
fn a_machine_without_a_freezer_has_no_warden() {
    let mut place = Place::new();
    place.group = place.run.with_file_name("no-group");
    assert_eq!(place.spawn().wait().unwrap().code(), Some(1));
}

#[test]
fn a_launch_that_cannot_enter_does_not_run() {
    let mut place = Place::new();
    let marker = place.run.with_file_name("marker");
    for how in ["run", "become"] {
        place.launch_as(how, "touch", &[marker.to_str().unwrap()]);
        assert_eq!(place.wait_launched(), Some(126), "{how}");
    }
    assert!(!marker.exists());
}

#[test]
fn both_ways_in_end_at_a_closed_gate_and_go_on_when_it_opens() {
    for how in ["run", "become"] {
        let mut place = Place::new();
        place.keep();
        let marker = place.run.with_file_name("marker");
        place.launch_as(how, "touch", &[marker.to_str().unwrap()]);
        wait_for("the launch", || place.is_populated().then_some(()));
        assert!(!marker.exists(), "{how}");
        place.talk().renew(10_000);
        assert_eq!(place.wait_launched(), Some(0), "{how}");
        assert!(marker.exists(), "{how}");
    }
}

#[test]
fn a_launch_whose_launcher_has_gone_while_it_stood_at_the_gate_never_runs() {
    let mut place = Place::new();
    place.keep();
    let marker = place.run.with_file_name("marker");
    let launcher = place.launch_as("run", "touch", &[marker.to_str().unwrap()]);
    wait_for("the launch", || place.is_populated().then_some(()));
    kill(launcher);
    place.wait_launched();
    assert!(place.is_populated());
    place.talk().renew(10_000);
    wait_for("its end", || (!place.is_populated()).then_some(()));
    assert!(!marker.exists());
}

#[test]
fn a_program_ends_with_its_launcher() {
    let mut place = Place::new();
    place.keep();
    place.talk().renew(10_000);
    let launcher = place.launch_as("run", "sleep", &["1000"]);
    wait_for("the launch", || place.is_populated().then_some(()));
    kill(launcher);
    place.wait_launched();
    wait_for("its end", || (!place.is_populated()).then_some(()));
}

fn kill(pid: u32) {
    // SAFETY: takes and touches no memory.
    unsafe { libc::kill(pid.try_into().unwrap(), libc::SIGKILL) };
}

#[test]
fn an_exit_code_is_that_of_the_program() {
    let mut place = Place::new();
    place.keep();
    place.talk().renew(10_000);
    for how in ["run", "become"] {
        place.launch_as(how, "sh", &["-c", "exit 7"]);
        assert_eq!(place.wait_launched(), Some(7), "{how}");
    }
    place.launch_as("run", "sh", &["-c", "kill -KILL $$"]);
    assert_eq!(place.wait_launched(), Some(137));
}

#[test]
fn it_is_small_and_sleeps() {
    let mut place = Place::new();
    let pid = place.keep();
    let mut talk = place.talk();
    for _ in 0..100 {
        talk.renew(60_000);
    }
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib < 256, "{kib} KiB of its own");
    let woken = || {
        fs::read_to_string(format!("/proc/{pid}/status"))
            .unwrap()
            .lines()
            .filter(|line| line.contains("ctxt"))
            .collect::<String>()
    };
    // Behind its last answer it still has to come to rest, which takes long on a machine that is busy.
    wait_for("300 ms in which nothing wakes it", || {
        let before = woken();
        std::thread::sleep(Duration::from_millis(300));
        (woken() == before).then_some(())
    });
}
