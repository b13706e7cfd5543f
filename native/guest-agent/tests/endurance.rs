//! What must stay flat: zombies, descriptors, threads, memory.
//!
//! Small by default; `SANDGLASS_TEST_SCALE=full` runs the numbers of the promises.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use std::time::{Duration, Instant};

use hyper::Method;
use sandglass_guest::frames::Frame;
use serde_json::json;
use support::{Guest, generated, scaled};

#[tokio::test]
async fn orphans_leave_no_zombie() {
    let guest = Guest::start().await;
    for _ in 0..scaled(50, 1000) {
        let output = guest
            .exec(json!({"argv": ["/bin/sh", "-c", "sleep 0.1 &"]}))
            .await;
        assert_eq!(output.exit_code(), 0);
    }
    let deadline = Instant::now() + Duration::from_mins(1);
    while guest.children().await > 0 {
        assert!(Instant::now() < deadline, "children are left");
    }
}

#[tokio::test]
async fn many_commands_leave_the_agent_as_it_was() {
    let guest = Guest::start().await;
    let rounds = scaled(30, 1250);
    let run = |rounds: u64| {
        let guest = &guest;
        async move {
            for _ in 0..rounds {
                let one = || guest.exec(json!({"argv": ["/bin/echo", "hello"]}));
                let four = || async { tokio::join!(one(), one(), one(), one()) };
                let (left, right) = tokio::join!(four(), four());
                for output in [left.0, left.1, left.2, left.3, right.0, right.1, right.2, right.3] {
                    assert_eq!(
                        (output.exit_code(), output.stdout.as_slice()),
                        (0, &b"hello\n"[..])
                    );
                }
            }
        }
    };
    // Long enough that the thousand remembered results are all there.
    run(scaled(10, 150)).await;
    let before = (
        guest.open_fds().await,
        guest.threads().await,
        guest.resident_bytes().await,
    );
    let started = Instant::now();
    run(rounds).await;
    println!(
        "{} commands: {:?} each",
        rounds * 8,
        started.elapsed() / u32::try_from(rounds * 8).unwrap()
    );
    // The last commands may still be on their way out, and the counting one on its way in.
    let deadline = Instant::now() + Duration::from_mins(1);
    let open_fds = loop {
        let open_fds = guest.open_fds().await;
        if open_fds <= before.0 {
            break open_fds;
        }
        assert!(
            Instant::now() < deadline,
            "descriptors stay open, were {}, are {open_fds}",
            before.0
        );
    };
    let after = (open_fds, guest.threads().await, guest.resident_bytes().await);
    println!("before {before:?}, after {after:?}");
    assert!(after.1 <= before.1 + 4, "threads: {before:?} {after:?}");
    assert!(after.2 <= before.2 + (3 << 20), "memory: {before:?} {after:?}");
}

#[tokio::test]
async fn a_flood_with_a_slow_reader_stays_flat() {
    let guest = Guest::start().await;
    let total = scaled(50_000_000, 5 << 30);
    let start = json!({"argv": ["/bin/sh", "-c", format!("yes | head -c {total}")]});
    let before = guest.resident_bytes().await;
    let mut stream = guest.exec_stream("/v1/exec", start).await;
    let (mut seen, mut most, mut frames) = (0, 0, 0_u64);
    let started = Instant::now();
    while let Some(frame) = stream.next().await {
        if let Frame::Output { offset, bytes, .. } = frame {
            assert_eq!(offset, seen);
            seen += bytes.len() as u64;
        }
        frames += 1;
        if frames % 20_000 == 100 {
            most = most.max(guest.resident_bytes().await);
        }
    }
    println!(
        "{total} bytes in {:?}, memory {before} to {most}",
        started.elapsed()
    );
    assert_eq!(seen, total);
    assert!(most < before + (8 << 20), "memory: {before} {most}");
}

#[tokio::test]
async fn a_large_stdin_arrives_whole() {
    let guest = Guest::start().await;
    let total = scaled(60 << 20, 1 << 30);
    let start = json!({"argv": ["/bin/sh", "-c", "sleep 1; wc -c"], "stdin": true, "key": "wc"});
    let mut stream = guest.exec_stream("/v1/exec", start).await;
    stream.started().await;
    let started = Instant::now();
    let target = "/v1/processes/key:wc/stdin?close=1";
    let answer = guest
        .ask_slowly(Method::POST, target, generated(total, 250_000, b'x'))
        .await;
    assert_eq!(answer.json()["accepted"], total);
    println!("{total} bytes of stdin in {:?}", started.elapsed());
    assert_eq!(
        String::from_utf8_lossy(&stream.finish().await.stdout).trim(),
        total.to_string()
    );
}
