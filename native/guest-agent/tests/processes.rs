//! Processes: start, output, exit, input, signals, timeouts, trees.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::{Value, json};
use support::{Guest, empty, generated, scaled, whole};

fn sh(script: &str) -> Value {
    json!({"argv": ["/bin/sh", "-c", script]})
}

#[tokio::test]
async fn health_tells_who_is_there() {
    let guest = Guest::start().await;
    assert_eq!(
        (&guest.hello["protocol"], &guest.hello["version"]),
        (&json!("sandglass-guest"), &json!(1))
    );
    let health = guest.get("/v1/health").await.json();
    assert_eq!(health["boot_id"], guest.hello["boot_id"]);
    assert_eq!(health["sandbox"], Value::Null);
}

#[tokio::test]
async fn output_and_exit_code_come_back_apart() {
    let guest = Guest::start().await;
    let output = guest.exec(sh("echo o; echo e >&2; exit 42")).await;
    assert_eq!(
        (
            output.stdout.as_slice(),
            output.stderr.as_slice(),
            output.exit_code()
        ),
        (&b"o\n"[..], &b"e\n"[..], 42)
    );
    assert_eq!(output.process()["output_open"], false);
    let output = guest
        .exec(json!({"argv": ["printf", "a\\0b\\377\\n\\n\\n b\\r\\nc"]}))
        .await;
    assert_eq!(output.stdout, b"a\0b\xff\n\n\n b\r\nc");
    let output = guest.exec(sh("kill -9 $$")).await;
    assert_eq!(
        (&output.process()["exit_code"], &output.process()["signal"]),
        (&Value::Null, &json!("KILL"))
    );
}

#[tokio::test]
async fn very_fast_commands_lose_nothing() {
    let guest = Guest::start().await;
    let rounds = u32::try_from(scaled(5, 50)).unwrap();
    for round in 0..rounds {
        let runs = (0..64).map(|index| {
            let number = i64::from(round * 64 + index);
            let guest = &guest;
            async move {
                let output = guest
                    .exec(sh(&format!("echo {number}; exit {}", number % 256)))
                    .await;
                assert_eq!(output.stdout, format!("{number}\n").into_bytes());
                assert_eq!(output.exit_code(), number % 256);
            }
        });
        join_all(runs).await;
    }
}

async fn join_all(futures: impl Iterator<Item = impl Future<Output = ()>>) {
    let mut pending: Vec<_> = futures.map(Box::pin).collect();
    std::future::poll_fn(|cx| {
        pending.retain_mut(|future| future.as_mut().poll(cx).is_pending());
        if pending.is_empty() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}

#[tokio::test]
async fn a_start_that_fails_is_named_and_not_listed() {
    let guest = Guest::start().await;
    let cases = [
        (json!({"argv": ["/no/such"]}), "executable_not_found"),
        (json!({"argv": ["no-such-name"]}), "executable_not_found"),
        (json!({"argv": ["/etc/passwd"]}), "executable_not_runnable"),
        (json!({"argv": ["true"], "cwd": "/no/such"}), "cwd_not_found"),
        (json!({"argv": ["true"], "cwd": "/etc/passwd"}), "cwd_not_found"),
        (json!({"argv": ["true"], "user": "nobody-here"}), "user_not_found"),
        (json!({"argv": []}), "invalid_request"),
        (json!({"argv": ["a\0b"]}), "invalid_request"),
        (json!({"argv": ["true"], "x": 1}), "invalid_request"),
        (json!({"argv": ["true"], "shell": "true"}), "invalid_request"),
        (
            json!({"argv": ["true"], "tty": {"cols": 0, "rows": 5}}),
            "invalid_request",
        ),
        (
            json!({"argv": ["true"], "tty": {"cols": 65535, "rows": 5}}),
            "invalid_request",
        ),
    ];
    for (start, code) in cases {
        let answer = guest.post("/v1/processes", start.clone()).await;
        assert_eq!(answer.error(), (400, code.to_owned()), "{start}");
        let answer = guest.post("/v1/exec", start.clone()).await;
        assert_eq!(answer.error(), (400, code.to_owned()), "{start}");
    }
    assert_eq!(guest.get("/v1/processes").await.json(), json!({"items": []}));
}

#[tokio::test]
async fn the_exit_does_not_wait_for_a_child_that_holds_the_pipe() {
    let guest = Guest::start().await;
    for script in ["sleep 60 &", "nohup sleep 60 & echo hi", "yes &"] {
        let before = Instant::now();
        let output = guest.exec(sh(script)).await;
        assert!(before.elapsed() < Duration::from_secs(30), "{script}");
        assert_eq!(
            (output.exit_code(), &output.process()["output_open"]),
            (0, &json!(true)),
            "{script}"
        );
        let id = output.process()["id"].as_str().unwrap();
        let answer = guest
            .post(&format!("/v1/processes/{id}/signal"), json!({"signal": "KILL"}))
            .await;
        assert_eq!(answer.status, 200, "{script}");
        let again = guest
            .post(&format!("/v1/processes/{id}/signal"), json!({"signal": "KILL"}))
            .await;
        assert_eq!(again.error(), (409, "process_exited".to_owned()));
    }
}

#[tokio::test]
async fn a_timeout_kills_the_whole_tree() {
    let guest = Guest::start().await;
    let script = if guest.is_sandbox() {
        "sleep 301 & setsid sleep 302 & (trap '' TERM; sleep 303) & (env -i setsid sleep 304 &) ; wait"
    } else {
        "sleep 301 & setsid sleep 302 & (trap '' TERM; sleep 303) & (setsid sleep 304 &) ; wait"
    };
    let before = Instant::now();
    let output = guest
        .exec(json!({"argv": ["/bin/sh", "-c", script], "timeout_ms": 300, "kill_grace_ms": 200}))
        .await;
    assert!(before.elapsed() < Duration::from_mins(1));
    assert_eq!(
        (&output.process()["timed_out"], &output.process()["signal"]),
        (&json!(true), &json!("TERM"))
    );
    let id = output.process()["id"].as_str().unwrap().to_owned();
    // The exit is told when nothing of the tree is left, those that ignore SIGTERM included.
    let again = guest
        .post(&format!("/v1/processes/{id}/signal"), json!({"signal": "CONT"}))
        .await;
    assert_eq!(again.error(), (409, "process_exited".to_owned()));
    assert_eq!(guest.exec(sh("echo ok")).await.stdout, b"ok\n");
    if guest.is_sandbox() {
        // Where there are control groups not even the one that left everything behind escapes.
        assert_eq!(
            guest
                .sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 30[1-4]'")
                .await,
            "0\n"
        );
        let deadline = Instant::now() + Duration::from_mins(1);
        while guest
            .sh("ls -d /sys/fs/cgroup$(sed s/^0::// /proc/1/cgroup)/pr* | wc -l")
            .await
            != "1\n"
        {
            assert!(Instant::now() < deadline, "control groups are left");
        }
    }
}

#[tokio::test]
async fn stdin_is_absent_or_open_as_asked() {
    let guest = Guest::start().await;
    let output = guest.exec(json!({"argv": ["cat"]})).await;
    assert_eq!((output.exit_code(), output.stdout.len()), (0, 0));
    let mut stream = guest
        .exec_stream(
            "/v1/exec",
            json!({"argv": ["cat"], "stdin": true, "key": "cat:1"}),
        )
        .await;
    stream.started().await;
    let target = "/v1/processes/key:cat:1/stdin";
    let answer = guest
        .ask(Method::POST, &format!("{target}?offset=0"), whole("hello "))
        .await;
    assert_eq!(answer.json(), json!({"accepted": 6, "open": true}));
    let answer = guest
        .ask(Method::POST, &format!("{target}?offset=7"), whole("x"))
        .await;
    assert_eq!(answer.error(), (409, "stdin_offset".to_owned()));
    let answer = guest
        .ask(
            Method::POST,
            &format!("{target}?offset=3&close=1"),
            whole("lo world"),
        )
        .await;
    assert_eq!(answer.json(), json!({"accepted": 11, "open": false}));
    let output = stream.finish().await;
    assert_eq!(
        (output.exit_code(), output.stdout.as_slice()),
        (0, &b"hello world"[..])
    );
    let answer = guest.ask(Method::POST, target, whole("more")).await;
    assert_eq!(answer.error(), (409, "process_exited".to_owned()));
}

#[tokio::test]
async fn a_writer_that_was_overtaken_is_refused_and_a_repeat_is_not() {
    let guest = Guest::start().await;
    let start = json!({"argv": ["cat"], "stdin": true, "key": "two"});
    let mut stream = guest.exec_stream("/v1/exec", start).await;
    stream.started().await;
    let write = async |writer: &str, offset: &str, text: &'static str| {
        let target = format!("/v1/processes/key:two/stdin?{offset}");
        let headers = [("sandglass-writer", writer)];
        let headers = if writer.is_empty() {
            &headers[1..]
        } else {
            &headers[..]
        };
        guest.ask_with(Method::POST, &target, headers, whole(text)).await
    };
    let accepted = async |writer: &str, offset: &str, text: &'static str| {
        write(writer, offset, text).await.json()["accepted"].clone()
    };
    assert_eq!(accepted("a", "offset=0", "one ").await, 4);
    assert_eq!(accepted("a", "offset=0", "one two ").await, 8);
    assert_eq!(accepted("b", "offset=8", "").await, 8);
    assert_eq!(accepted("a", "offset=4", "two ").await, 8);
    assert_eq!(accepted("b", "offset=8", "three ").await, 14);
    for (writer, offset, text) in [
        ("a", "offset=8", "lost and longer "),
        ("a", "offset=4", "two "),
        ("", "offset=8", "lost "),
        ("b", "offset=7", " three "),
    ] {
        assert_eq!(
            write(writer, offset, text).await.error(),
            (409, "stdin_offset".to_owned()),
            "{writer} {offset}"
        );
    }
    assert_eq!(accepted("b", "offset=8", "three ").await, 14);
    assert_eq!(accepted("a", "offset=14", "four ").await, 19);
    assert_eq!(accepted("b", "", "five").await, 23);
    assert_eq!(write("b", "offset=23&close=1", "").await.json()["open"], false);
    assert_eq!(stream.finish().await.stdout, b"one two three four five");
    assert_eq!(
        write(&"w".repeat(129), "", "x").await.error(),
        (400, "invalid_request".to_owned())
    );
}

#[tokio::test]
async fn large_stdin_arrives_whole_though_the_reader_sleeps_first() {
    let guest = Guest::start().await;
    let size = 48 << 20;
    let start = json!({"argv": ["/bin/sh", "-c", "sleep 0.5; wc -c"], "stdin": true, "key": "wc"});
    let mut stream = guest.exec_stream("/v1/exec", start).await;
    stream.started().await;
    let answer = guest
        .ask(
            Method::POST,
            "/v1/processes/key:wc/stdin?close=1",
            generated(size, 100_000, b'x'),
        )
        .await;
    assert_eq!(answer.json()["accepted"], size);
    assert_eq!(
        String::from_utf8_lossy(&stream.finish().await.stdout).trim(),
        size.to_string()
    );
}

#[tokio::test]
async fn a_closed_reader_refuses_input() {
    let guest = Guest::start().await;
    let start = json!({"argv": ["/bin/sh", "-c", "exec <&-; sleep 20"], "stdin": true});
    let id = guest.post("/v1/processes", start).await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let answer = guest
        .ask(
            Method::POST,
            &format!("/v1/processes/{id}/stdin"),
            generated(1 << 20, 4096, b'x'),
        )
        .await;
    assert_eq!(answer.error(), (409, "stdin_closed".to_owned()));
}

#[tokio::test]
async fn output_replays_from_any_offset() {
    let guest = Guest::start().await;
    let id = guest
        .post("/v1/processes", sh("seq 1 3000; seq 1 10 >&2"))
        .await
        .json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let whole = guest.output_stream(&id, "follow=1").await.finish().await;
    assert_eq!(whole.stdout.len(), 13893);
    assert_eq!(whole.stderr.len(), 21);
    for since in (0..13893).step_by(277) {
        let part = guest
            .output_stream(&id, &format!("stream=stdout&since={since}"))
            .await
            .finish()
            .await;
        assert_eq!(part.stdout, whole.stdout[since..]);
        assert_eq!(part.last["type"], "exit");
    }
    let beyond = guest.get(&format!("/v1/processes/{id}/output?since=13894")).await;
    assert_eq!(beyond.error(), (400, "invalid_request".to_owned()));
}

#[tokio::test]
async fn a_detached_process_never_blocks_and_leaves_a_gap() {
    let guest = Guest::start().await;
    let start = json!({"argv": ["/bin/sh", "-c", "yes | head -c 8000000; echo end"], "key": "flood"});
    guest.post("/v1/processes", start).await;
    let deadline = Instant::now() + Duration::from_mins(1);
    while guest.get("/v1/processes/key:flood").await.json()["state"] != "exited" {
        assert!(Instant::now() < deadline);
    }
    let output = guest.output_stream("key:flood", "follow=1").await.finish().await;
    assert_eq!(
        output.gaps,
        [json!({"type": "gap", "stream": "stdout", "from": 0, "to": 8_000_004 - (1 << 20)})]
    );
    assert_eq!(output.stdout.len(), 1 << 20);
    assert!(output.stdout.ends_with(b"y\nend\n"));
}

#[tokio::test]
async fn a_slow_reader_slows_the_writer_and_loses_nothing() {
    let guest = Guest::start().await;
    let mut stream = guest.exec_stream("/v1/exec", sh("yes | head -c 64000000")).await;
    let process = stream.started().await;
    let before = guest.resident_bytes().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let seen = guest
        .get(&format!("/v1/processes/{}", process["id"].as_str().unwrap()))
        .await
        .json();
    assert!(seen["stdout"]["end"].as_u64().unwrap() < 6 << 20, "{seen}");
    let output = stream.finish().await;
    assert_eq!(output.stdout.len(), 64_000_000);
    assert!(guest.resident_bytes().await < before + (8 << 20));
}

#[tokio::test]
async fn a_key_starts_one_process() {
    let guest = Guest::start().await;
    let start = json!({"argv": ["/bin/sh", "-c", "echo $$"], "key": "once"});
    let (a, b) = tokio::join!(
        guest.post("/v1/processes", start.clone()),
        guest.post("/v1/processes", start.clone())
    );
    assert_eq!(a.json()["id"], b.json()["id"]);
    assert_eq!([a.status.as_u16(), b.status.as_u16()].iter().sum::<u16>(), 401);
    let other = guest
        .post("/v1/processes", json!({"argv": ["true"], "key": "once"}))
        .await;
    assert_eq!(other.error(), (409, "process_key_conflict".to_owned()));
    assert_eq!(guest.exec(start).await.started["id"], a.json()["id"]);
}

#[tokio::test]
async fn orphans_are_reaped() {
    let guest = Guest::start().await;
    for _ in 0..50 {
        guest.exec(sh("sleep 0.1 &")).await;
    }
    let deadline = Instant::now() + Duration::from_mins(1);
    while guest.children().await > 0 {
        assert!(Instant::now() < deadline, "children are left");
    }
}

#[tokio::test]
async fn processes_outlive_the_session() {
    let mut guest = Guest::start().await;
    let mut stream = guest
        .exec_stream(
            "/v1/exec",
            json!({"argv": ["/bin/sh", "-c", "echo a; read x; echo b$x"], "stdin": true, "key": "live"}),
        )
        .await;
    stream.until("a\n").await;
    drop(stream);
    let boot = guest.hello["boot_id"].clone();
    guest.reconnect().await;
    assert_eq!(guest.hello["boot_id"], boot);
    guest
        .ask(Method::POST, "/v1/processes/key:live/stdin", whole("1\n"))
        .await;
    let output = guest.output_stream("key:live", "follow=1").await.finish().await;
    assert_eq!(
        (output.exit_code(), output.stdout.as_slice()),
        (0, &b"a\nb1\n"[..])
    );
}

#[tokio::test]
async fn a_disconnect_kills_only_when_asked() {
    let guest = Guest::start().await;
    for (query, lives) in [("", true), ("?kill_on_disconnect=1", false)] {
        let start = json!({"argv": ["sleep", "30"], "key": format!("k{lives}")});
        let mut stream = guest.exec_stream(&format!("/v1/exec{query}"), start).await;
        stream.started().await;
        drop(stream);
        let target = format!("/v1/processes/key:k{lives}");
        let deadline = Instant::now() + Duration::from_secs(if lives { 1 } else { 60 });
        while guest.get(&target).await.json()["state"] == "running" && Instant::now() < deadline {}
        assert_eq!(guest.get(&target).await.json()["state"] == "running", lives);
        let removed = guest.ask(Method::DELETE, &target, empty()).await;
        assert_eq!(removed.status, if lives { 409 } else { 204 });
    }
}

#[tokio::test]
async fn environment_directory_and_user_are_as_asked() {
    let guest = Guest::start().await;
    let identity =
        json!({"sandbox": "sb1", "generation": 3, "env": {"A": "1", "B": "1"}, "default_cwd": "/tmp"});
    let answer = guest
        .ask(Method::PUT, "/v1/identity", whole(identity.to_string()))
        .await;
    assert_eq!(answer.json()["generation"], 3);
    let again = guest
        .ask(Method::PUT, "/v1/identity", whole(identity.to_string()))
        .await;
    assert_eq!(again.status, 200);
    let other = guest
        .ask(
            Method::PUT,
            "/v1/identity",
            whole(json!({"sandbox": "sb2", "generation": 3}).to_string()),
        )
        .await;
    assert_eq!(other.error(), (409, "identity_conflict".to_owned()));
    let start = json!({"argv": ["/bin/sh", "-c", "echo $A $B $HOME $PWD $(id -u) $(id -g) $(id -G)"], "env": {"B": "2"}, "user": "65534:65534", "cwd": "/usr"});
    assert_eq!(
        guest.exec(start).await.stdout,
        b"1 2 /nonexistent /usr 65534 65534 65534\n"
    );
    assert_eq!(guest.sh("pwd").await, "/tmp\n");
}
