//! The test vectors that the TypeScript contract checks as well.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::path::Path;

use bytes::BytesMut;
use sandglass_guest::channel::preamble::{self, Answer, FEATURES, Hello, PROTOCOL, PROTOCOL_VERSION};
use sandglass_guest::errors::ErrorCode;
use sandglass_guest::files::path::GuestPath;
use sandglass_guest::frames::{self, CHANNEL_STDERR, CHANNEL_STDOUT, Frame};
use sandglass_guest::http::json_request;
use sandglass_guest::http::query::Query;
use sandglass_guest::process::start_request::{Fingerprints, StartProcess};
use sandglass_guest::process::stdin_stream::Receipt;
use serde_json::{Value, json};

fn vectors(name: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packages/contract/vectors/guest-protocol");
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
        .collect()
}

#[test]
fn hello_is_written_as_the_host_reads_it() {
    for vector in vectors("hello.json") {
        let fields = &vector["fields"];
        let hello = Hello {
            protocol: PROTOCOL,
            version: PROTOCOL_VERSION,
            agent: "0.1.0",
            boot_id: fields["boot_id"].as_str().unwrap(),
            session: fields["session"].as_str().unwrap(),
            sandbox: fields["sandbox"].as_str(),
            generation: fields["generation"].as_u64(),
            features: FEATURES,
        };
        let line = preamble::encode(&hello).unwrap();
        assert_eq!(
            String::from_utf8(line).unwrap(),
            format!("{}\n", vector["line"].as_str().unwrap()),
            "{vector}"
        );
    }
}

#[test]
fn host_answers_are_read() {
    for vector in vectors("host-answer.json") {
        let seen = preamble::decode(vector["line"].as_str().unwrap().as_bytes());
        let seen = match seen {
            Ok(Answer::Accepted { epoch }) => json!({"accepted": true, "epoch": epoch}),
            Ok(Answer::Refused) => json!({"accepted": false}),
            Err(_) => json!("error"),
        };
        assert_eq!(seen, vector["expect"], "{vector}");
    }
}

#[test]
fn frames_are_read_and_written_back() {
    for vector in vectors("frames.json") {
        let bytes = unhex(vector["hex"].as_str().unwrap());
        let mut buffer = BytesMut::from(bytes.as_slice());
        let mut seen = Vec::new();
        let mut written = BytesMut::new();
        let end = loop {
            match frames::take(&mut buffer) {
                Ok(Some(Frame::Output {
                    channel,
                    offset,
                    bytes,
                })) => {
                    frames::put_output(&mut written, channel, offset, &bytes);
                    let stream = match channel {
                        CHANNEL_STDOUT => "stdout",
                        CHANNEL_STDERR => "stderr",
                        other => panic!("{other}"),
                    };
                    seen.push(json!({"stream": stream, "offset": offset, "bytes_hex": hex(&bytes)}));
                }
                Ok(Some(Frame::Status(status))) => {
                    // Written as it came: the order of fields is the sender's.
                    written.extend_from_slice(&[3]);
                    written.extend_from_slice(&u32::try_from(status.len()).unwrap().to_be_bytes());
                    written.extend_from_slice(&status);
                    seen.push(json!({"status": serde_json::from_slice::<Value>(&status).unwrap()}));
                }
                Ok(None) if buffer.is_empty() => break Value::Array(seen),
                Ok(None) => break json!("incomplete"),
                Err(_) => break json!("error"),
            }
        };
        assert_eq!(end, vector["expect"], "{vector}");
        if end.is_array() {
            assert_eq!(written, bytes, "{vector}");
        }
    }
}

#[test]
fn start_requests_are_checked() {
    let fingerprints = Fingerprints::default();
    for vector in vectors("start-process.json") {
        let body = vector["body"].to_string();
        let seen =
            json_request::parse::<StartProcess>(body.as_bytes()).and_then(|start| start.check(&fingerprints));
        let seen = seen.map_or_else(|error| error.code.name(), |_| "ok");
        assert_eq!(seen, vector["expect"], "{vector}");
    }
}

#[test]
fn receipts_of_input_are_written_as_the_gateway_reads_them() {
    for vector in vectors("stdin-receipts.json") {
        let receipt = &vector["receipt"];
        let line = match receipt["type"].as_str().unwrap() {
            "taken" => Receipt::Taken {
                bytes: receipt["bytes"].as_u64().unwrap(),
            }
            .line(),
            _ => Receipt::Error {
                code: receipt["code"].as_str().unwrap(),
                detail: receipt["detail"].as_str().unwrap(),
            }
            .line(),
        };
        let wanted = format!("{}\n", vector["line"].as_str().unwrap());
        assert_eq!(String::from_utf8_lossy(&line), wanted, "{vector}");
    }
}

#[test]
fn paths_are_decoded_once() {
    for vector in vectors("paths.json") {
        let raw = format!("path={}", vector["query_value"].as_str().unwrap());
        let seen = Query::parse(Some(&raw), &["path"])
            .and_then(|query| GuestPath::new(query.bytes("path").unwrap_or_default()));
        match vector["expect_error"].as_str() {
            Some(code) => assert_eq!(seen.map_err(|error| error.code.name()), Err(code), "{vector}"),
            None => assert_eq!(hex(seen.unwrap().bytes()), vector["expect_hex"], "{vector}"),
        }
    }
}

#[test]
fn errors_are_those_of_the_registry() {
    let own: Vec<Value> = ErrorCode::ALL
        .iter()
        .map(|code| json!({"code": code.name(), "status": code.status().as_u16()}))
        .collect();
    assert_eq!(own, vectors("errors.json"));
}
