//! Terminals: size, input, signals, floods, replay.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::Incoming;
use sandglass_guest::limits::STDIN_RECEIPT_BYTES;
use serde_json::{Value, json};
use support::{Guest, fed, whole};

fn terminal(script: &str, key: &str) -> Value {
    json!({"argv": ["/bin/bash", "-c", script], "tty": {"cols": 81, "rows": 25}, "key": key})
}

async fn type_in(guest: &Guest, key: &str, text: &str) {
    let answer = guest
        .ask(
            Method::POST,
            &format!("/v1/processes/key:{key}/stdin"),
            whole(text.to_owned()),
        )
        .await;
    assert_eq!(answer.status, 200, "{:?}", answer.bytes);
}

#[tokio::test]
async fn the_size_is_right_from_the_first_byte_and_follows() {
    let guest = Guest::start().await;
    let script = "stty size; tty; echo $TERM; trap 'echo winch' WINCH; sleep 9 & wait; kill $!; while read x; do stty size; done; echo bye";
    let mut stream = guest.exec_stream("/v1/exec", terminal(script, "t")).await;
    let seen = stream.until("xterm-256color\r\n").await;
    assert!(seen.starts_with("25 81\r\n/dev/pts/"), "{seen:?}");
    for cols in (2..100).chain([1000, 1]) {
        let answer = guest
            .post("/v1/processes/key:t/resize", json!({"cols": cols, "rows": 9}))
            .await;
        assert_eq!(answer.json()["cols"], cols);
    }
    for bad in [
        json!({"cols": 0, "rows": 9}),
        json!({"cols": 65535, "rows": 9}),
        json!({"cols": 1001, "rows": 9}),
        json!({"cols": 80}),
    ] {
        assert_eq!(
            guest.post("/v1/processes/key:t/resize", bad).await.error(),
            (400, "invalid_request".to_owned())
        );
    }
    guest
        .post("/v1/processes/key:t/resize", json!({"cols": 132, "rows": 43}))
        .await;
    stream.until("winch\r\n").await;
    type_in(&guest, "t", "go\n").await;
    stream.until("43 132\r\n").await;
    guest
        .ask(Method::POST, "/v1/processes/key:t/stdin?close=1", whole(""))
        .await;
    let output = stream.finish().await;
    assert!(
        output.stdout.ends_with(b"bye\r\n"),
        "{:?}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert_eq!(
        (output.exit_code(), &output.process()["output_open"]),
        (0, &json!(false))
    );
    let answer = guest
        .post("/v1/processes", json!({"argv": ["sleep", "9"], "key": "plain"}))
        .await;
    assert_eq!(answer.status, 201);
    let answer = guest
        .post("/v1/processes/key:plain/resize", json!({"cols": 80, "rows": 24}))
        .await;
    assert_eq!(answer.error(), (409, "not_a_terminal".to_owned()));
}

#[tokio::test]
async fn an_interrupt_gets_through_a_flood_nobody_reads() {
    let guest = Guest::start().await;
    let script = "trap 'echo interrupted; exit 7' INT; while :; do yes | head -c 4000000; done";
    let mut stream = guest.exec_stream("/v1/exec", terminal(script, "flood")).await;
    stream.until("y\r\n").await;
    // The reader stops; the terminal fills up.
    let deadline = Instant::now() + Duration::from_mins(1);
    let mut end = 0;
    loop {
        let seen = guest.get("/v1/processes/key:flood").await.json()["stdout"]["end"]
            .as_u64()
            .unwrap();
        if seen > 1 << 20 && seen == end {
            break;
        }
        assert!(Instant::now() < deadline, "the flood was never held back");
        end = seen;
        guest.sh("sleep 0.3").await;
    }
    let started = Instant::now();
    type_in(&guest, "flood", "\x03").await;
    let output = stream.finish().await;
    assert_eq!(output.exit_code(), 7);
    assert!(
        started.elapsed() < Duration::from_secs(30),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn a_detached_terminal_keeps_draining_and_replays() {
    let guest = Guest::start().await;
    let script = "stty -onlcr; yes | head -c 30000000; echo done; read x; echo got $x";
    let mut stream = guest.exec_stream("/v1/exec", terminal(script, "d")).await;
    stream.started().await;
    drop(stream);
    let deadline = Instant::now() + Duration::from_mins(1);
    while guest.get("/v1/processes/key:d").await.json()["stdout"]["end"]
        .as_u64()
        .unwrap()
        < 30_000_005
    {
        assert!(Instant::now() < deadline, "the detached terminal blocks");
    }
    let mut stream = guest.output_stream("key:d", "follow=1&since=30000000").await;
    assert!(stream.until("done\n").await.ends_with("done\n"));
    drop(stream);
    let mut stream = guest.output_stream("key:d", "follow=1&since=30000005").await;
    type_in(&guest, "d", "it\n").await;
    stream.until("got it").await;
}

#[tokio::test]
async fn attaching_again_and_again_loses_and_repeats_nothing() {
    let guest = Guest::start().await;
    let script = "stty raw -echo; i=0; while [ $i -lt 4000 ]; do echo $i; i=$((i+1)); done; read x";
    guest.post("/v1/processes", terminal(script, "c")).await;
    let mut seen = Vec::new();
    let expected: Vec<u8> = (0..4000).flat_map(|i| format!("{i}\n").into_bytes()).collect();
    while seen.len() < expected.len() {
        let mut stream = guest
            .output_stream("key:c", &format!("follow=1&since={}", seen.len()))
            .await;
        stream.started().await;
        if let Some(sandglass_guest::frames::Frame::Output { offset, bytes, .. }) = stream.next().await {
            assert_eq!(offset, seen.len() as u64);
            seen.extend_from_slice(&bytes[..bytes.len().min(211)]);
        }
    }
    assert_eq!(seen, expected);
    guest
        .post("/v1/processes/key:c/signal", json!({"signal": "KILL"}))
        .await;
    let (a, b) = tokio::join!(
        guest.post("/v1/processes/key:c/signal", json!({"signal": "KILL"})),
        guest.ask(Method::POST, "/v1/processes/key:c/stdin?close=1", whole("x")),
    );
    assert_eq!((a.status.as_u16(), b.status.as_u16()), (409, 409));
}

#[tokio::test]
async fn a_terminal_belongs_to_its_user() {
    let guest = Guest::start().await;
    let start = json!({"argv": ["/bin/sh", "-c", "stat -c '%u %a' $(tty); echo ok > /dev/tty; id -u"], "tty": {"cols": 80, "rows": 24}, "user": "65534"});
    let output = guest.exec(start).await;
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "65534 620\r\nok\r\n65534\r\n"
    );
}

/// An input that stays open.
struct Typing {
    keys: tokio::sync::mpsc::Sender<Result<Bytes, std::io::Error>>,
    answer: Incoming,
}

impl Typing {
    async fn begin(guest: &Guest, key: &str, query: &str) -> Self {
        let (keys, body) = fed();
        let target = format!("/v1/processes/key:{key}/stdin?stream=1{query}");
        let response = guest.send(Method::POST, &target, body).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "application/x-ndjson");
        Self {
            keys,
            answer: response.into_body(),
        }
    }

    async fn types(&self, text: impl Into<Bytes>) {
        self.keys.send(Ok(text.into())).await.unwrap();
    }

    /// The next line; a receipt is one frame.
    async fn told(&mut self) -> Value {
        let frame = tokio::time::timeout(Duration::from_secs(20), self.answer.frame())
            .await
            .expect("no receipt");
        serde_json::from_slice(&frame.unwrap().unwrap().into_data().unwrap()).unwrap()
    }

    /// The last line, after a clean end.
    async fn ends(self) -> Value {
        drop(self.keys);
        let rest = self.answer.collect().await.unwrap().to_bytes();
        let last = rest.trim_ascii_end().rsplit(|byte| *byte == b'\n').next();
        serde_json::from_slice(last.unwrap()).unwrap()
    }
}

async fn accepted(guest: &Guest, key: &str) -> u64 {
    let process = guest.get(&format!("/v1/processes/key:{key}")).await.json();
    process["stdin"]["accepted"].as_u64().unwrap()
}

#[tokio::test]
async fn an_input_that_stays_open_keeps_nobody_from_typing() {
    let guest = Guest::start().await;
    let script = "while read x; do echo got $x; done";
    let mut stream = guest.exec_stream("/v1/exec", terminal(script, "s")).await;
    stream.started().await;
    let typing = Typing::begin(&guest, "s", "&offset=0").await;
    let other = Typing::begin(&guest, "s", "").await;
    typing.types("a\n").await;
    stream.until("got a\r\n").await;
    type_in(&guest, "s", "b\n").await;
    stream.until("got b\r\n").await;
    other.types("c\n").await;
    stream.until("got c\r\n").await;
    typing.types("d\n").await;
    stream.until("got d\r\n").await;
    assert_eq!(typing.ends().await, json!({"type": "taken", "bytes": 4}));
    assert_eq!(other.ends().await, json!({"type": "taken", "bytes": 2}));
    // A repeat is left out, and counts as taken.
    let again = Typing::begin(&guest, "s", "&offset=4").await;
    again.types("c\nd").await;
    again.types("\ne\n").await;
    let seen = stream.until("got e\r\n").await;
    assert_eq!(seen, "e\r\ngot e\r\n");
    assert_eq!(again.ends().await, json!({"type": "taken", "bytes": 6}));
    let mut hole = Typing::begin(&guest, "s", "&offset=11").await;
    hole.types("f\n").await;
    assert_eq!(hole.told().await["code"], "stdin_offset");
    assert_eq!(accepted(&guest, "s").await, 10);
}

#[tokio::test]
async fn an_input_that_stays_open_is_receipted_step_by_step() {
    let guest = Guest::start().await;
    let script = "stty raw -echo; echo ready; cat > /dev/null";
    let mut stream = guest.exec_stream("/v1/exec", terminal(script, "r")).await;
    stream.until("ready").await;
    let mut typing = Typing::begin(&guest, "r", "").await;
    let step = usize::try_from(STDIN_RECEIPT_BYTES).unwrap();
    for steps in 1..=5 {
        typing.types(vec![b'x'; step - 1]).await;
        typing.types("x").await;
        let taken = STDIN_RECEIPT_BYTES * steps;
        assert_eq!(typing.told().await, json!({"type": "taken", "bytes": taken}));
    }
    guest
        .post("/v1/processes/key:r/signal", json!({"signal": "KILL"}))
        .await;
    stream.finish().await;
    typing.types("y").await;
    assert_eq!(typing.told().await["code"], "process_exited");
    assert!(typing.answer.frame().await.is_none(), "it goes on");
}

#[tokio::test]
async fn who_breaks_off_types_nothing_later() {
    let guest = Guest::start().await;
    let go = guest.sh("mktemp -u").await;
    let go = go.trim();
    let script = format!("stty raw -echo; echo ready; until [ -e {go} ]; do sleep 0.02; done; exec cat");
    let mut stream = guest.exec_stream("/v1/exec", terminal(&script, "b")).await;
    stream.until("ready\n").await;
    let typing = Typing::begin(&guest, "b", "").await;
    // More than the terminal holds, so that the rest waits for its reader.
    let sent = 400_000;
    typing.types(vec![b'x'; sent]).await;
    let deadline = Instant::now() + Duration::from_mins(1);
    while accepted(&guest, "b").await == 0 {
        assert!(Instant::now() < deadline, "nothing was taken");
    }
    typing
        .keys
        .send(Err(std::io::Error::other("gone")))
        .await
        .unwrap();
    assert!(typing.answer.collect().await.is_err(), "it was told as whole");
    let given = accepted(&guest, "b").await;
    guest.sh(&format!("touch {go}")).await;
    type_in(&guest, "b", "END").await;
    let seen = stream.until("END").await;
    guest.sh(&format!("rm {go}")).await;
    assert_eq!(seen.matches('x').count() as u64, given);
    assert!(given < sent as u64);
    assert_eq!(accepted(&guest, "b").await, given + 3);
}

#[tokio::test]
async fn only_the_input_of_a_terminal_stays_open() {
    let guest = Guest::start().await;
    let answer = guest
        .post(
            "/v1/processes",
            json!({"argv": ["cat"], "stdin": true, "key": "pipe"}),
        )
        .await;
    assert_eq!(answer.status, 201);
    let ask = async |target: &str| {
        let answer = guest.ask(Method::POST, target, whole("x")).await;
        answer.error()
    };
    assert_eq!(
        ask("/v1/processes/key:pipe/stdin?stream=1").await,
        (409, "not_a_terminal".to_owned())
    );
    assert_eq!(accepted(&guest, "pipe").await, 0);
    let output = guest.exec(terminal("true", "t")).await;
    assert_eq!(output.exit_code(), 0);
    assert_eq!(
        ask("/v1/processes/key:t/stdin?stream=1").await,
        (409, "process_exited".to_owned())
    );
    assert_eq!(
        ask("/v1/processes/key:t/stdin?stream=1&close=1").await,
        (400, "invalid_request".to_owned())
    );
    assert_eq!(
        ask("/v1/processes/key:t/stdin?stream=2").await,
        (400, "invalid_request".to_owned())
    );
}
