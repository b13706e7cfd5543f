//! Watches: what happened is told, in order, with names as bytes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use base64::Engine;
use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::Incoming;
use serde_json::{Value, json};
use support::{Guest, PATIENCE, empty};

struct Events {
    body: Incoming,
    buffer: Vec<u8>,
}

impl Events {
    async fn open(guest: &Guest, query: &str) -> Self {
        let response = guest
            .send(Method::GET, &format!("/v1/files/watch?{query}"), empty())
            .await;
        assert_eq!(response.status(), 200);
        let mut events = Self {
            body: response.into_body(),
            buffer: Vec::new(),
        };
        assert_eq!(events.next().await, Some(json!({"type": "ready"})));
        events
    }

    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let mut event: Value = serde_json::from_slice(&line).unwrap();
                if event.as_object_mut().unwrap().remove("at_ms").is_none() {
                    assert!(["ready", "heartbeat"].contains(&event["type"].as_str().unwrap()));
                }
                return Some(event);
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame())
                .await
                .expect("no event")?;
            self.buffer.extend_from_slice(&frame.ok()?.into_data().unwrap());
        }
    }

    /// Reads on until `wanted` comes.
    async fn until(&mut self, wanted: Value) -> Vec<Value> {
        let mut seen = Vec::new();
        let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
        while seen.last() != Some(&wanted) {
            assert!(std::time::Instant::now() < deadline, "no {wanted}, only {seen:?}");
            match self.next().await {
                Some(event) => seen.push(event),
                None => panic!("no {wanted}, only {seen:?}"),
            }
        }
        seen
    }
}

#[tokio::test]
async fn a_recursive_watch_follows_the_tree() {
    let guest = Guest::start().await;
    let dir = guest.sh("mktemp -d").await.trim().to_owned();
    guest.sh(&format!("mkdir -p {dir}/a/b {dir}/out")).await;
    let watch = format!("{dir}/a");
    let mut events = Events::open(&guest, &format!("path={watch}&recursive=1")).await;
    let at = |name: &str| format!("{watch}/{name}");
    guest.sh(&format!("echo x > {watch}/b/f")).await;
    let seen = events.until(json!({"type": "modified", "path": at("b/f")})).await;
    assert_eq!(seen[0], json!({"type": "created", "path": at("b/f")}));
    guest
        .sh(&format!(
            "mv {watch}/b/f {watch}/g; mv {watch}/b {watch}/c; echo y > {watch}/c/h"
        ))
        .await;
    events
        .until(json!({"type": "moved", "path": at("b/f"), "to": at("g")}))
        .await;
    events
        .until(json!({"type": "moved", "path": at("b"), "to": at("c")}))
        .await;
    events.until(json!({"type": "created", "path": at("c/h")})).await;
    guest
        .sh(&format!(
            "mkdir -p {watch}/n/m; echo z > {watch}/n/m/z; mv {watch}/g {dir}/out"
        ))
        .await;
    events
        .until(json!({"type": "created", "path": at("n/m/z")}))
        .await;
    events.until(json!({"type": "deleted", "path": at("g")})).await;
    guest
        .sh(&format!("rm -r {watch}/c; touch {watch}/\"$(printf '\\377')\""))
        .await;
    events.until(json!({"type": "deleted", "path": at("c/h")})).await;
    events.until(json!({"type": "deleted", "path": at("c")})).await;
    let bytes = [watch.as_bytes(), b"/\xff"].concat();
    let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
    events
        .until(json!({"type": "created", "path": at("\u{fffd}"), "path_b64": encoded}))
        .await;
    guest.sh(&format!("rm -r {watch}")).await;
    events.until(json!({"type": "deleted", "path": watch})).await;
    assert_eq!(events.next().await, None);
    guest.sh(&format!("rm -r {dir}")).await;
}

#[tokio::test]
async fn watches_are_counted_and_given_back() {
    let guest = Guest::start().await;
    let missing = guest.get("/v1/files/watch?path=/no/such").await;
    assert_eq!(missing.error(), (404, "file_not_found".to_owned()));
    let dir = guest.sh("mktemp -d").await.trim().to_owned();
    let fds = guest.open_fds().await;
    let mut open = Vec::new();
    for _ in 0..64 {
        open.push(Events::open(&guest, &format!("path={dir}")).await);
    }
    let refused = guest.get(&format!("/v1/files/watch?path={dir}")).await;
    assert_eq!(refused.error(), (422, "limit_exceeded".to_owned()));
    guest.sh(&format!("touch {dir}/x")).await;
    for events in &mut open {
        events
            .until(json!({"type": "created", "path": format!("{dir}/x")}))
            .await;
    }
    drop(open);
    let deadline = std::time::Instant::now() + PATIENCE;
    while guest.open_fds().await > fds {
        assert!(std::time::Instant::now() < deadline, "watches stayed open");
    }
    Events::open(&guest, &format!("path={dir}")).await;
    guest.sh(&format!("rm -r {dir}")).await;
}
