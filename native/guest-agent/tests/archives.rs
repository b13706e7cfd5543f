//! Archives: there and back, from other tools, and with ill intent.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod support;

use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::Method;
use sandglass_guest::tar::header::HeaderParts;
use sandglass_guest::tar::writer;
use support::{Answer, Guest, empty, fed, whole};

const TREE: &str = r#"
    mkdir -p t/sub/deep t/empty "t/日本 語" t/closed
    echo hello > t/a; printf 'x%.0s' $(seq 300000) > t/big; : > t/zero
    head -c 512 /dev/urandom > t/block; head -c 513 /dev/urandom > t/block1
    echo run > t/sub/run; chmod 4755 t/sub/run
    ln t/a t/sub/hard; ln -s ../a t/sub/soft; ln -s /etc/passwd t/sub/out; ln -s nowhere t/dangling
    long=$(printf 'n%.0s' $(seq 200)); mkdir -p t/$long/$long; echo deep > t/$long/$long/$long; ln -s $long/$long/$long t/longlink
    echo bytes > "t/$(printf '\377\376')"; chmod 640 t/a; touch -d @1000000000 t/a t/sub
    echo c > t/closed/f; chmod 500 t/closed
"#;
const DESCRIBE: &str = r"find . \( -type f -printf '%p f %m %s %T@ %n\n' \) -o \( -type l -printf '%p l %l\n' \) -o -printf '%p %y %m\n' | sed 's/\.[0-9]* \([0-9]*\)$/ \1/' | LC_ALL=C sort; find . -type f | LC_ALL=C sort | xargs -d '\n' sha256sum";

async fn scratch(guest: &Guest) -> String {
    guest.sh("mktemp -d").await.trim().to_owned()
}

async fn pack(guest: &Guest, path: &str) -> Answer {
    guest.get(&format!("/v1/files/archive?path={path}")).await
}

async fn unpack(guest: &Guest, path: &str, archive: impl Into<Bytes>) -> Answer {
    guest
        .ask(
            Method::PUT,
            &format!("/v1/files/archive?path={path}"),
            whole(archive),
        )
        .await
}

#[tokio::test]
async fn a_tree_goes_there_and_back() {
    let guest = Guest::start().await;
    let dir = scratch(&guest).await;
    guest.sh(&format!("cd {dir}; {TREE}")).await;
    let packed = pack(&guest, &format!("{dir}/t")).await;
    assert_eq!(
        (packed.status.as_u16(), packed.header("content-type")),
        (200, "application/x-tar")
    );
    let entries = packed.trailers.as_ref().unwrap()["sandglass-entries"]
        .to_str()
        .unwrap()
        .to_owned();
    let unpacked = unpack(&guest, &format!("{dir}/new/place"), packed.bytes.clone()).await;
    assert_eq!(
        (unpacked.status.as_u16(), unpacked.json()["entries"].to_string()),
        (200, entries)
    );
    let before = guest
        .sh(&format!("cd {dir}/t; chmod 755 sub/run; {DESCRIBE}"))
        .await;
    assert_eq!(guest.sh(&format!("cd {dir}/new/place; {DESCRIBE}")).await, before);
    // The system's tar reads it the same.
    guest
        .ask(
            Method::PUT,
            &format!("/v1/files?path={dir}/x.tar"),
            whole(packed.bytes),
        )
        .await;
    let listed = guest
        .sh(&format!(
            "cd {dir}; mkdir sys; tar -xf x.tar -C sys && cd sys && chmod 755 sub/run && {DESCRIBE}"
        ))
        .await;
    assert_eq!(listed, before);
    guest.sh(&format!("rm -rf {dir}")).await;
}

#[tokio::test]
async fn archives_of_other_tools_are_read() {
    let guest = Guest::start().await;
    let dir = scratch(&guest).await;
    guest.sh(&format!("cd {dir}; {TREE}")).await;
    let before = guest
        .sh(&format!("cd {dir}/t; chmod 755 sub/run; {DESCRIBE}"))
        .await;
    let python = format!(
        "python3 -c 'import tarfile; t=tarfile.open(\"x.tar\",\"w:gz\",format=tarfile.PAX_FORMAT); t.add(\"{dir}/t\",\".\"); t.close()'"
    );
    for make in [
        "tar --format=pax -cf x.tar -C t .",
        "tar --format=gnu -czf x.tar -C t .",
        "tar -cf x.tar -C t $(ls -A t | tr '\\n' ' ' >/dev/null; echo .)",
        &python,
    ] {
        guest.sh(&format!("cd {dir}; {make}")).await;
        let archive = guest.get(&format!("/v1/files?path={dir}/x.tar")).await.bytes;
        let answer = unpack(&guest, &format!("{dir}/out"), archive).await;
        assert_eq!(answer.status, 200, "{make}: {:?}", answer.bytes);
        assert_eq!(
            guest.sh(&format!("cd {dir}/out; {DESCRIBE}")).await,
            before,
            "{make}"
        );
        guest
            .sh(&format!("chmod -R u+rwx {dir}/out; rm -r {dir}/out {dir}/x.tar"))
            .await;
    }
    guest.sh(&format!("rm -rf {dir}")).await;
}

fn entry(kind: u8, name: &[u8], link: &[u8], mode: u32, bytes: &[u8]) -> BytesMut {
    let mut out = BytesMut::new();
    let parts = HeaderParts {
        name,
        link,
        kind,
        mode,
        uid: 0,
        gid: 0,
        user: "",
        group: "",
        size: bytes.len() as u64,
        modified: 1,
    };
    writer::put_header(&mut out, &parts);
    out.put_slice(bytes);
    writer::put_padding(&mut out, bytes.len() as u64);
    out
}

fn archive(entries: &[BytesMut]) -> Bytes {
    let mut out = BytesMut::new();
    for entry in entries {
        out.put_slice(entry);
    }
    writer::put_end(&mut out);
    out.freeze()
}

#[tokio::test]
async fn nothing_leads_out_and_nothing_is_dropped_silently() {
    let guest = Guest::start().await;
    let dir = scratch(&guest).await;
    guest
        .sh(&format!("cd {dir}; mkdir outside; echo safe > outside/f"))
        .await;
    let outside = format!("{dir}/outside");
    let file = |name: &str| entry(b'0', name.as_bytes(), b"", 0o644, b"evil");
    let link = |name: &str, to: &str| entry(b'2', name.as_bytes(), to.as_bytes(), 0o777, b"");
    let hard = |name: &str, to: &str| entry(b'1', name.as_bytes(), to.as_bytes(), 0o644, b"");
    let mut damaged = archive(&[file("a")]).to_vec();
    damaged[700] = b'x';
    damaged[20] = b'x';
    let whole_one = archive(&[file("a"), file("b")]);
    let cases: Vec<(&str, Bytes)> = vec![
        ("dotdot", archive(&[file("../outside/f")])),
        ("inner dotdot", archive(&[file("a/../../outside/f")])),
        ("absolute", archive(&[file(&format!("{outside}/f"))])),
        ("through a link", archive(&[link("l", "../outside"), file("l/f")])),
        (
            "through an absolute link",
            archive(&[link("l", &outside), file("l/f")]),
        ),
        (
            "through two links",
            archive(&[link("a", "."), link("a/b", "../outside"), file("a/b/f")]),
        ),
        (
            "directory over a link",
            archive(&[link("l", "../outside"), entry(b'5', b"l/", b"", 0o755, b"")]),
        ),
        ("hard link out", archive(&[hard("h", "../outside/f")])),
        (
            "absolute hard link",
            archive(&[hard("h", &format!("{outside}/f"))]),
        ),
        (
            "hard link through a link",
            archive(&[link("l", "../outside"), hard("h", "l/f")]),
        ),
        (
            "hard link to a link",
            archive(&[link("l", "../outside/f"), hard("h", "l")]),
        ),
        ("block device", archive(&[entry(b'4', b"d", b"", 0o644, b"")])),
        ("character device", archive(&[entry(b'3', b"d", b"", 0o644, b"")])),
        ("fifo", archive(&[entry(b'6', b"p", b"", 0o644, b"")])),
        ("sparse", archive(&[entry(b'S', b"s", b"", 0o644, b"")])),
        ("unknown kind", archive(&[entry(b'V', b"v", b"", 0o644, b"")])),
        ("no name", archive(&[entry(b'0', b"", b"", 0o644, b"")])),
        ("top is a file", archive(&[entry(b'0', b"./", b"", 0o644, b"")])),
        ("long name", archive(&[file(&"n".repeat(256))])),
        ("damaged", Bytes::from(damaged)),
        ("cut off", whole_one.slice(..1024)),
        ("cut off in a header", whole_one.slice(..1100)),
        ("cut off in data", whole_one.slice(..514)),
        ("empty", Bytes::new()),
        ("not tar", Bytes::from(vec![b'z'; 2000])),
        (
            "two archives",
            Bytes::from([whole_one.clone(), whole_one.clone()].concat()),
        ),
        ("cut gzip", Bytes::from_static(b"\x1f\x8b\x08\0\0\0\0\0\0\x03")),
        ("not gzip", Bytes::from_static(b"\x1f\x8bnot at all gzip")),
    ];
    for (name, archive) in cases {
        let answer = unpack(&guest, &format!("{dir}/in"), archive).await;
        assert_eq!(
            answer.error(),
            (400, "archive_invalid".to_owned()),
            "{name}: {:?}",
            answer.bytes
        );
        assert_eq!(
            guest.sh(&format!("cd {dir}; cat outside/*; ls -A outside")).await,
            "safe\nf\n",
            "{name}"
        );
        guest.sh(&format!("rm -rf {dir}/in")).await;
    }
    let answer = unpack(&guest, &format!("{dir}/in"), archive(&[file(&"a/".repeat(2100))])).await;
    assert_eq!(answer.error(), (413, "archive_limit".to_owned()));
    let huge = {
        let mut out = BytesMut::new();
        let parts = HeaderParts {
            name: b"h",
            link: b"",
            kind: b'0',
            mode: 0o644,
            uid: 0,
            gid: 0,
            user: "",
            group: "",
            size: 1 << 40,
            modified: 1,
        };
        writer::put_header(&mut out, &parts);
        out.freeze()
    };
    assert_eq!(
        unpack(&guest, &format!("{dir}/in"), huge).await.error(),
        (413, "archive_limit".to_owned())
    );
    let setuid = archive(&[
        entry(b'0', b"s", b"", 0o6755, b"x"),
        entry(b'0', b"s", b"", 0o6711, b"yy"),
    ]);
    assert_eq!(unpack(&guest, &format!("{dir}/in"), setuid).await.status, 200);
    assert_eq!(guest.sh(&format!("stat -c '%a %s' {dir}/in/s")).await, "711 2\n");
    assert_eq!(
        unpack(&guest, &format!("{dir}/in/s"), archive(&[file("a")]))
            .await
            .error(),
        (409, "not_a_directory".to_owned())
    );
    assert_eq!(
        pack(&guest, &format!("{dir}/none")).await.error(),
        (404, "file_not_found".to_owned())
    );
    guest.sh(&format!("rm -rf {dir}")).await;
}

#[tokio::test]
async fn a_cut_off_archive_leaves_no_half_file() {
    let guest = Guest::start().await;
    let dir = scratch(&guest).await;
    let whole_one = archive(&[
        entry(b'0', b"first", b"", 0o644, b"1"),
        entry(b'0', b"second", b"", 0o644, &vec![7; 1 << 20]),
    ]);
    let (feed, body) = fed();
    let target = format!("/v1/files/archive?path={dir}/in");
    {
        let mut request = Box::pin(guest.ask(Method::PUT, &target, body));
        let mut feeding = Box::pin(async {
            feed.send(Ok(whole_one.slice(..500_000))).await.unwrap();
            let deadline = Instant::now() + Duration::from_mins(1);
            while guest.sh(&format!("ls {dir}/in")).await != "first\nsecond\n" {
                assert!(Instant::now() < deadline);
            }
        });
        std::future::poll_fn(|cx| {
            assert!(request.as_mut().poll(cx).is_pending());
            feeding.as_mut().poll(cx)
        })
        .await;
    }
    drop(feed);
    let deadline = Instant::now() + Duration::from_mins(1);
    while guest.sh(&format!("ls {dir}/in")).await != "first\n" {
        assert!(Instant::now() < deadline, "half a file stayed");
    }
    guest.sh(&format!("rm -rf {dir}")).await;
}

#[tokio::test]
async fn what_cannot_be_read_resets_the_stream() {
    let guest = Guest::start().await;
    let dir = scratch(&guest).await;
    guest
        .sh(&format!(
            "cd {dir}; chmod 755 .; mkdir t; echo secret > t/f; chmod 600 t/f; mkfifo t/p"
        ))
        .await;
    let response = guest
        .send(
            Method::GET,
            &format!("/v1/files/archive?path={dir}/t&user=65534"),
            empty(),
        )
        .await;
    assert_eq!(response.status(), 200);
    assert!(response.into_body().collect().await.is_err());
    let packed = pack(&guest, &format!("{dir}/t")).await;
    let trailers = packed.trailers.unwrap();
    assert_eq!(
        (&trailers["sandglass-entries"], &trailers["sandglass-skipped"]),
        (&"2".parse().unwrap(), &"1".parse().unwrap())
    );
    let single = pack(&guest, &format!("{dir}/t/f")).await;
    assert_eq!(single.bytes.len(), 512 * 4);
    guest.sh(&format!("rm -rf {dir}")).await;
}
