//! Everything that reads bytes from outside, fed with seeded nonsense: no panic, no disagreement.
//!
//! `SANDGLASS_FUZZ_SEEDS` sets how many seeds are tried; a failure names its seed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[path = "../src/seeded.rs"]
mod seeded;

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::{BufMut, BytesMut};
use sandglass_guest::channel::preamble;
use sandglass_guest::errors::{ErrorCode, Outcome};
use sandglass_guest::files::path::GuestPath;
use sandglass_guest::files::range;
use sandglass_guest::frames::{self, DATA_MAX_BYTES, Frame};
use sandglass_guest::http::json_request;
use sandglass_guest::http::query::Query;
use sandglass_guest::process::start_request::{Fingerprints, StartProcess};
use sandglass_guest::tar::header::HeaderParts;
use sandglass_guest::tar::reader::{Entry, Sink, TarReader, Totals};
use sandglass_guest::tar::writer;
use sandglass_guest::users::Accounts;
use seeded::Seeded;

fn each_seed(check: impl Fn(&mut Seeded)) {
    let seeds = std::env::var("SANDGLASS_FUZZ_SEEDS")
        .ok()
        .and_then(|seeds| seeds.parse().ok())
        .unwrap_or(2000);
    for seed in 0..seeds {
        let result = catch_unwind(AssertUnwindSafe(|| check(&mut Seeded::new(seed))));
        assert!(result.is_ok(), "failed with seed {seed}");
    }
}

/// A valid input, changed in a few places; now and then pure noise.
fn mutated(random: &mut Seeded, samples: &[&[u8]]) -> Vec<u8> {
    if random.below(10) == 0 {
        return random.bytes(2000);
    }
    let mut bytes = random.pick(samples).unwrap().to_vec();
    for _ in 0..random.below(4) {
        let at = random.below(bytes.len().max(1));
        match random.below(5) {
            0 => bytes.truncate(at),
            1 => bytes.splice(at..at, random.bytes(20)).for_each(drop),
            2 if at < bytes.len() => bytes[at] = u8::try_from(random.below(256)).unwrap(),
            3 => {
                let again = random.pick(samples).unwrap().to_vec();
                bytes.extend_from_slice(&again);
            }
            _ => {
                if at < bytes.len() {
                    bytes[at] ^= 1 << random.below(8);
                }
            }
        }
    }
    bytes
}

/// The same bytes in pieces of random sizes.
fn pieces<'a>(random: &mut Seeded, mut bytes: &'a [u8]) -> Vec<&'a [u8]> {
    let most = *random.pick(&[1, 7, 600, 5000, 1 << 20]).unwrap();
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at((1 + random.below(most)).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

#[test]
fn preambles() {
    let samples: [&[u8]; 3] = [
        b"{\"accept\":true,\"version\":1,\"epoch\":12}\n",
        b"{\"accept\":false,\"reason\":\"no\"}\n",
        b"{\"accept\":true,\"version\":18446744073709551616,\"epoch\":1e400}\n",
    ];
    each_seed(|random| {
        let line = mutated(random, &samples);
        if preamble::decode(&line).is_ok() {
            assert!(line.len() <= 1024 && line.ends_with(b"\n"));
        }
    });
}

#[test]
fn queries_and_paths() {
    let samples: [&[u8]; 4] = [
        b"path=/a%20b&user=root",
        b"path=%ff%00",
        b"path=/%F0%9F%A4%A3&recursive=1",
        b"path=&&=&path",
    ];
    each_seed(|random| {
        let raw = String::from_utf8_lossy(&mutated(random, &samples)).into_owned();
        let Ok(query) = Query::parse(Some(&raw), &["path", "user", "recursive"]) else {
            return;
        };
        let _ = (
            query.flag("recursive"),
            query.number("recursive"),
            query.text("user"),
        );
        let Ok(path) = GuestPath::new(query.bytes("path").unwrap_or_default()) else {
            return;
        };
        assert!(path.bytes().starts_with(b"/") && !path.bytes().contains(&0) && path.bytes().len() <= 4096);
        let _ = path.shown();
        if let Ok((parent, name)) = path.split() {
            assert!(parent.is_absolute() && !name.to_bytes().contains(&b'/'));
            assert!(!matches!(name.to_bytes(), b"" | b"." | b".."));
        }
    });
}

#[test]
fn start_requests() {
    let samples: [&[u8]; 3] = [
        br#"{"argv":["a","b"],"env":{"A":"1"},"cwd":"/tmp","user":"1:1","stdin":true,"timeout_ms":5,"key":"k"}"#,
        br#"{"shell":"echo","tty":{"cols":80,"rows":24},"kill_grace_ms":0}"#,
        br#"{"argv_b64":["/w==","AA=="],"key":"\ud83e\udd23"}"#,
    ];
    let fingerprints = Fingerprints::default();
    each_seed(|random| {
        let body = mutated(random, &samples);
        if let Ok(request) =
            json_request::parse::<StartProcess>(&body).and_then(|start| start.check(&fingerprints))
        {
            assert!(
                request
                    .cwd
                    .is_none_or(|cwd| cwd.starts_with('/') && !cwd.contains('\0'))
            );
            assert!(request.tty.is_none_or(|size| size.cols > 0 && size.rows > 0));
        }
    });
}

#[test]
fn ranges_and_accounts() {
    each_seed(|random| {
        let header = String::from_utf8_lossy(&mutated(
            random,
            &[b"bytes=0-99", b"bytes=-5", b"bytes=18446744073709551615-"],
        ))
        .into_owned();
        let size = random.next() >> random.below(64);
        if let Ok(Some(span)) = range::parse(Some(&header), size) {
            assert!(span.length > 0 && span.from.checked_add(span.length).is_some_and(|end| end <= size));
        }
        let passwd =
            String::from_utf8_lossy(&mutated(random, &[b"root:x:0:0::/root:/bin/sh\na:x:1:1::/:\n"]))
                .into_owned();
        let wanted =
            String::from_utf8_lossy(&mutated(random, &[b"root", b"1:2", b"a", b"4294967294"])).into_owned();
        if let Ok(user) = Accounts::new(&passwd, &passwd).resolve(&wanted) {
            assert!(user.uid != u32::MAX && user.gid != u32::MAX && user.groups.contains(&user.gid));
        }
    });
}

#[test]
fn frames_survive_any_cut() {
    each_seed(|random| {
        let mut wire = BytesMut::new();
        let mut sent = Vec::new();
        for _ in 0..random.below(12) {
            if random.below(4) == 0 {
                assert!(frames::put_status(
                    &mut wire,
                    &serde_json::json!({"type": "heartbeat", "n": random.below(9)})
                ));
            } else {
                let most = *random.pick(&[1, 10, 70_000]).unwrap();
                let bytes = random.bytes(most);
                let (channel, offset) = (1 + u8::try_from(random.below(2)).unwrap(), random.next());
                let taken = frames::put_output(&mut wire, channel, offset, &bytes);
                assert_eq!(taken, bytes.len().min(DATA_MAX_BYTES));
                sent.push((channel, offset, bytes[..taken].to_vec()));
            }
        }
        let mut buffer = BytesMut::new();
        let mut seen = Vec::new();
        for piece in pieces(random, &wire) {
            buffer.extend_from_slice(piece);
            while let Some(frame) = frames::take(&mut buffer).unwrap() {
                if let Frame::Output {
                    channel,
                    offset,
                    bytes,
                } = frame
                {
                    seen.push((channel, offset, bytes.to_vec()));
                }
            }
        }
        assert!(buffer.is_empty());
        assert_eq!(seen, sent);
        let mut noise = BytesMut::from(mutated(random, &[&wire]).as_slice());
        while let Ok(Some(_)) = frames::take(&mut noise) {}
    });
}

#[derive(Default, Debug, PartialEq)]
struct Recorded {
    entries: Vec<(Entry, Vec<u8>, bool)>,
}

impl Sink for Recorded {
    fn begin(&mut self, entry: &Entry) -> Outcome<()> {
        assert!(
            self.entries
                .last()
                .is_none_or(|(last, bytes, _)| last.size == bytes.len() as u64)
        );
        self.entries.push((entry.clone(), Vec::new(), false));
        Ok(())
    }

    fn data(&mut self, bytes: &[u8]) -> Outcome<()> {
        let (entry, gathered, ended) = self.entries.last_mut().unwrap();
        gathered.extend_from_slice(bytes);
        assert!(gathered.len() as u64 <= entry.size && !*ended);
        Ok(())
    }

    fn end(&mut self) -> Outcome<()> {
        let (entry, gathered, ended) = self.entries.last_mut().unwrap();
        assert!(gathered.len() as u64 == entry.size && !*ended);
        *ended = true;
        Ok(())
    }
}

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Result<Totals, ErrorCode>, Recorded) {
    let (mut reader, mut sink) = (TarReader::default(), Recorded::default());
    for piece in pieces {
        if let Err(error) = reader.feed(piece, &mut sink) {
            return (Err(error.code), sink);
        }
    }
    (reader.finish().map_err(|error| error.code), sink)
}

fn archive(random: &mut Seeded) -> (Vec<u8>, usize) {
    let mut out = BytesMut::new();
    let entries = random.below(6);
    for _ in 0..entries {
        let kind = *random.pick(b"000512").unwrap();
        let longest = *random.pick(&[20, 300]).unwrap();
        let name = vec![b'n'; 1 + random.below(longest)];
        let link = if b"12".contains(&kind) {
            vec![b'l'; 1 + random.below(300)]
        } else {
            Vec::new()
        };
        let most = *random.pick(&[2, 513, 4000]).unwrap();
        let bytes = if kind == b'0' {
            random.bytes(most)
        } else {
            Vec::new()
        };
        let parts = HeaderParts {
            name: &name,
            link: &link,
            kind,
            mode: 0o644,
            uid: 0,
            gid: 0,
            user: "",
            group: "",
            size: bytes.len() as u64,
            modified: 5,
        };
        if random.below(5) == 0 {
            put_pax(&mut out, random);
        }
        writer::put_header(&mut out, &parts);
        out.put_slice(&bytes);
        writer::put_padding(&mut out, bytes.len() as u64);
    }
    writer::put_end(&mut out);
    (out.to_vec(), entries)
}

fn put_pax(out: &mut BytesMut, random: &mut Seeded) {
    let records: &[u8] = random
        .pick(&[
            &b"14 path=a\nb/c\n"[..],
            b"21 mtime=-12.5000000\n",
            b"12 x=yyyyyy\n",
        ])
        .unwrap();
    let parts = HeaderParts {
        name: b"pax",
        link: b"",
        kind: b'x',
        mode: 0,
        uid: 0,
        gid: 0,
        user: "",
        group: "",
        size: records.len() as u64,
        modified: 0,
    };
    writer::put_header(out, &parts);
    out.put_slice(records);
    writer::put_padding(out, records.len() as u64);
}

#[test]
fn archives_read_the_same_in_any_pieces() {
    each_seed(|random| {
        let (whole, entries) = archive(random);
        let (totals, recorded) = read([whole.as_slice()]);
        assert_eq!(totals.map(|totals| totals.entries), Ok(entries as u64));
        assert!(recorded.entries.iter().all(|(entry, bytes, ended)| {
            bytes.len() as u64 == entry.size && (*ended || entry.size == 0)
        }));
        let split = pieces(random, &whole);
        assert_eq!(read(split), (totals, recorded));
        // Damaged, it is still the same to every reader, and never a panic.
        let damaged = mutated(random, &[&whole]);
        let (one, two) = (read([damaged.as_slice()]), read(pieces(random, &damaged)));
        assert_eq!(one.0, two.0);
        assert_eq!(one.1.entries.len(), two.1.entries.len());
    });
}
