//! A short command is told in one piece; one that takes longer is not held back by that.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use http_body_util::BodyExt;
use hyper::Method;
use serde_json::json;
use support::{Guest, whole};

#[tokio::test]
async fn a_short_command_is_one_piece_with_its_length() {
    let guest = Guest::start().await;
    // Where the machine is busy a command may take longer than the agent waits.
    for _ in 0..100 {
        let answer = guest
            .post("/v1/exec", json!({"argv": ["/bin/echo", "hello"]}))
            .await;
        if answer.header("content-length") == answer.bytes.len().to_string() {
            return;
        }
    }
    panic!("no command of a hundred came in one piece");
}

#[tokio::test]
async fn a_command_that_runs_on_is_told_when_it_has_begun() {
    let guest = Guest::start().await;
    let start = json!({"argv": ["/bin/sh", "-c", "echo begun; read nothing; echo over"], "stdin": true});
    let response = guest
        .send(Method::POST, "/v1/exec", whole(start.to_string()))
        .await;
    assert!(response.headers().get("content-length").is_none());
    let mut body = response.into_body();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("begun\n") {
        let frame = body.frame().await.unwrap().unwrap();
        seen.extend_from_slice(&frame.into_data().unwrap());
    }
    assert!(!String::from_utf8_lossy(&seen).contains("\"exit\""));
}

#[tokio::test]
async fn users_that_are_added_later_are_found() {
    let guest = Guest::start().await;
    if !guest.is_sandbox() {
        // The accounts are the machine's.
        return;
    }
    guest.sh("true").await;
    guest
        .sh("echo 'late:x:4321:4321::/:/bin/sh' >> /etc/passwd")
        .await;
    let output = guest.exec(json!({"argv": ["id", "-u"], "user": "late"})).await;
    assert_eq!(output.stdout, b"4321\n");
}
