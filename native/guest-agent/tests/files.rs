//! Files: reading, writing, listing, removing, as whoever asks.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
// A test reads best as one story.
#![allow(clippy::too_many_lines)]

mod support;

use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};
use support::{Guest, empty, fed, generated, scaled, whole};

fn encode(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, byte| text + &format!("%{byte:02x}"))
}

/// A directory of the test's own, as its processes and its file requests name it.
async fn scratch(guest: &Guest) -> String {
    guest.sh("mktemp -d").await.trim().to_owned()
}

async fn put(guest: &Guest, path: &str, bytes: impl Into<Bytes>) -> support::Answer {
    guest
        .ask(
            Method::PUT,
            &format!("/v1/files?path={}", encode(path.as_bytes())),
            whole(bytes),
        )
        .await
}

async fn get(guest: &Guest, path: &str) -> support::Answer {
    guest
        .get(&format!("/v1/files?path={}", encode(path.as_bytes())))
        .await
}

#[tokio::test]
async fn what_was_written_is_there_when_the_answer_is() {
    let guest = Guest::start().await;
    let dir = scratch(&guest).await;
    for size in [
        0,
        1,
        18_431,
        18_432,
        18_433,
        65_535,
        65_536,
        65_537,
        1 << 20,
        20 << 20,
    ] {
        let path = format!("{dir}/f{size}");
        let answer = guest
            .ask(
                Method::PUT,
                &format!("/v1/files?path={path}"),
                generated(size, 33_333, b'z'),
            )
            .await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["size"]),
            (201, &json!(size))
        );
        assert_eq!(
            guest
                .sh(&format!("stat -c '%s %a' {path}; tr -d z < {path} | wc -c"))
                .await,
            format!("{size} 644\n0\n")
        );
        let read = get(&guest, &path).await;
        assert_eq!(
            (read.bytes.len() as u64, read.header("content-length")),
            (size, size.to_string().as_str())
        );
        assert_eq!(read.header("etag"), answer.json()["etag"]);
    }
    assert_eq!(
        guest.sh(&format!("ls -a {dir} | grep -c sandglass-")).await,
        "0\n"
    );
    guest.sh(&format!("rm -r {dir}")).await;
}

#[tokio::test]
async fn names_are_bytes() {
    let guest = Guest::start().await;
    let dir = scratch(&guest).await;
    let long = [b'n'; 255];
    let names: [&[u8]; 11] = [
        "🤣".as_bytes(),
        "é".as_bytes(),
        "e\u{301}".as_bytes(),
        "日本".as_bytes(),
        b"a b",
        b"#?%&\"+",
        b"new\nline",
        b"-rf",
        b"\xff\xfe",
        b"%41",
        &long,
    ];
    for name in names {
        let path = [dir.as_bytes(), b"/", name].concat();
        let answer = guest
            .ask(
                Method::PUT,
                &format!("/v1/files?path={}", encode(&path)),
                whole(name.to_vec()),
            )
            .await;
        assert_eq!(answer.status, 201);
        assert_eq!(
            guest
                .get(&format!("/v1/files?path={}", encode(&path)))
                .await
                .bytes,
            name
        );
    }
    let page = guest.get(&format!("/v1/files/list?path={dir}")).await.json();
    let mut listed: Vec<Vec<u8>> = page["items"].as_array().unwrap().iter().map(name_bytes).collect();
    let sorted = {
        let mut names: Vec<Vec<u8>> = names.iter().map(|name| name.to_vec()).collect();
        names.sort();
        names
    };
    assert_eq!(listed, sorted);
    listed.clear();
    let mut cursor = String::new();
    loop {
        let page = guest
            .get(&format!("/v1/files/list?path={dir}&limit=2{cursor}"))
            .await
            .json();
        listed.extend(page["items"].as_array().unwrap().iter().map(name_bytes));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(listed, sorted);
    let too_long = format!("{dir}/{}", "n".repeat(256));
    assert_eq!(
        put(&guest, &too_long, "x").await.error(),
        (400, "path_invalid".into())
    );
    guest.sh(&format!("rm -r {dir}")).await;
}

fn name_bytes(item: &Value) -> Vec<u8> {
    use base64::Engine;
    match item["name_b64"].as_str() {
        Some(encoded) => base64::engine::general_purpose::STANDARD.decode(encoded).unwrap(),
        None => item["name"].as_str().unwrap().as_bytes().to_vec(),
    }
}

#[tokio::test]
async fn what_is_no_readable_file_is_an_error_of_its_own() {
    let guest = Guest::start().await;
    let dir = scratch(&guest).await;
    guest
        .sh(&format!(
            "cd {dir}; mkfifo fifo; ln -s nowhere dangling; ln -s loop loop; mkdir d; echo x > f; chmod 600 f"
        ))
        .await;
    let cases = [
        ("missing", 404, "file_not_found"),
        ("missing/x", 404, "file_not_found"),
        ("f/x", 409, "not_a_directory"),
        ("d", 409, "is_a_directory"),
        ("fifo", 409, "not_a_regular_file"),
        ("dangling", 404, "file_not_found"),
        ("loop", 400, "path_invalid"),
    ];
    for (name, status, code) in cases {
        assert_eq!(
            get(&guest, &format!("{dir}/{name}")).await.error(),
            (status, code.to_owned()),
            "{name}"
        );
    }
    assert_eq!(
        get(&guest, "/dev/zero").await.error(),
        (409, "not_a_regular_file".into())
    );
    assert_eq!(
        guest
            .get(&format!("/v1/files?path={dir}/f&user=65534"))
            .await
            .error(),
        (403, "permission_denied".into())
    );
    assert_eq!(
        guest.get("/v1/files?path=relative").await.error(),
        (400, "path_invalid".into())
    );
    assert_eq!(
        guest.get("/v1/files?path=").await.error(),
        (400, "path_invalid".into())
    );
    assert_eq!(guest.get("/v1/files").await.error(), (400, "path_invalid".into()));
    assert_eq!(
        guest.get("/v1/files?path=/a%00b").await.error(),
        (400, "path_invalid".into())
    );
    assert_eq!(
        guest.get("/v1/files?path=/a%zz").await.error(),
        (400, "invalid_request".into())
    );
    assert_eq!(
        guest.get("/v1/files?path=/a&bogus=1").await.error(),
        (400, "invalid_request".into())
    );
    assert_eq!(
        guest
            .get("/v1/files?path=/etc/hostname&user=nobody-here")
            .await
            .error(),
        (400, "user_not_found".into())
    );
    assert!(get(&guest, "/proc/self/status").await.bytes.starts_with(b"Name:"));
    assert_eq!(
        get(&guest, "/proc/self/mem").await.error(),
        (409, "not_a_regular_file".into())
    );
    guest.sh(&format!("rm -r {dir}")).await;
}

#[tokio::test]
async fn ranges_and_versions() {
    let guest = Guest::start().await;
    let dir = scratch(&guest).await;
    let path = format!("{dir}/f");
    let target = format!("/v1/files?path={path}");
    let tag = put(&guest, &path, "0123456789").await.header("etag").to_owned();
    let part = guest
        .ask_with(Method::GET, &target, &[("range", "bytes=2-4")], empty())
        .await;
    assert_eq!(
        (
            part.status.as_u16(),
            &part.bytes[..],
            part.header("content-range")
        ),
        (206, &b"234"[..], "bytes 2-4/10")
    );
    let beyond = guest
        .ask_with(Method::GET, &target, &[("range", "bytes=10-")], empty())
        .await;
    assert_eq!(beyond.error(), (416, "range_not_satisfiable".into()));
    let head = guest.ask(Method::HEAD, &target, empty()).await;
    assert_eq!(
        (
            head.status.as_u16(),
            head.header("content-length"),
            head.bytes.len()
        ),
        (200, "10", 0)
    );
    let known = guest
        .ask_with(Method::GET, &target, &[("if-none-match", &tag)], empty())
        .await;
    assert_eq!((known.status.as_u16(), known.bytes.len()), (304, 0));
    let write = |headers: Vec<(&'static str, String)>| {
        let (guest, target) = (&guest, target.clone());
        async move {
            let headers: Vec<(&str, &str)> = headers
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect();
            guest.ask_with(Method::PUT, &target, &headers, whole("new")).await
        }
    };
    assert_eq!(
        write(vec![("if-none-match", "*".into())]).await.error(),
        (412, "precondition_failed".into())
    );
    assert_eq!(
        write(vec![("if-match", "\"1-2-3\"".into())]).await.error(),
        (412, "precondition_failed".into())
    );
    assert_eq!(get(&guest, &path).await.bytes, "0123456789");
    assert_eq!(write(vec![("if-match", tag.clone())]).await.status, 200);
    assert_eq!(
        write(vec![("if-match", tag)]).await.error(),
        (412, "precondition_failed".into())
    );
    guest.sh(&format!("rm {path}")).await;
    assert_eq!(
        write(vec![("if-match", "*".into())]).await.error(),
        (412, "precondition_failed".into())
    );
    assert_eq!(write(vec![("if-none-match", "*".into())]).await.status, 201);
    guest.sh(&format!("rm -r {dir}")).await;
}

#[tokio::test]
async fn a_cancelled_upload_leaves_no_trace() {
    let guest = Guest::start().await;
    let dir = scratch(&guest).await;
    put(&guest, &format!("{dir}/f"), "old").await;
    let (feed, body) = fed();
    let target = format!("/v1/files?path={dir}/f");
    {
        let request = guest.ask(Method::PUT, &target, body);
        let feeding = async {
            for _ in 0..20 {
                feed.send(Ok(Bytes::from(vec![b'x'; 100_000]))).await.unwrap();
            }
            assert_eq!(
                guest.sh(&format!("ls -a {dir} | grep -c sandglass-")).await,
                "1\n"
            );
        };
        // Dropping the request resets its stream.
        let mut request = Box::pin(request);
        let mut feeding = Box::pin(feeding);
        std::future::poll_fn(|cx| {
            assert!(request.as_mut().poll(cx).is_pending());
            feeding.as_mut().poll(cx)
        })
        .await;
    }
    drop(feed);
    let deadline = Instant::now() + Duration::from_mins(1);
    while guest.sh(&format!("ls -A {dir}")).await != "f\n" {
        assert!(Instant::now() < deadline, "the temporary file stayed");
    }
    assert_eq!(get(&guest, &format!("{dir}/f")).await.bytes, "old");
    guest.sh(&format!("rm -r {dir}")).await;
}

#[tokio::test]
async fn writing_keeps_mode_and_owner_and_goes_through_links() {
    let guest = Guest::start().await;
    let dir = scratch(&guest).await;
    guest.sh(&format!("cd {dir}; chmod 755 .; echo old > f; chmod 640 f; chown 65534:65534 f; ln -s f l; ln -s new dangling; mkdir d; ln -s d dl; mkfifo p")).await;
    assert_eq!(put(&guest, &format!("{dir}/l"), "one").await.status, 200);
    assert_eq!(
        guest
            .sh(&format!("cd {dir}; stat -c '%a %u %F' f l; cat f"))
            .await,
        "640 65534 regular file\n777 0 symbolic link\none"
    );
    assert_eq!(put(&guest, &format!("{dir}/dangling"), "two").await.status, 201);
    assert_eq!(guest.sh(&format!("cat {dir}/new")).await, "two");
    assert_eq!(put(&guest, &format!("{dir}/dl/x"), "three").await.status, 201);
    assert_eq!(guest.sh(&format!("cat {dir}/d/x")).await, "three");
    assert_eq!(
        put(&guest, &format!("{dir}/d"), "x").await.error(),
        (409, "is_a_directory".into())
    );
    assert_eq!(
        put(&guest, &format!("{dir}/dl"), "x").await.error(),
        (409, "is_a_directory".into())
    );
    assert_eq!(
        put(&guest, &format!("{dir}/p"), "x").await.error(),
        (409, "not_a_regular_file".into())
    );
    assert_eq!(
        put(&guest, &format!("{dir}/no/where"), "x").await.error(),
        (404, "file_not_found".into())
    );
    for bad in ["/", "//", "/.", "/..", &format!("{dir}/.")] {
        assert_eq!(
            put(&guest, bad, "x").await.error(),
            (400, "path_invalid".into()),
            "{bad}"
        );
    }
    let deep = guest
        .ask(
            Method::PUT,
            &format!("/v1/files?path={dir}/p1/p2/f&parents=1&mode=0751"),
            whole("x"),
        )
        .await;
    assert_eq!(deep.status, 201);
    assert_eq!(
        guest.sh(&format!("cd {dir}; stat -c %a p1/p2/f p1/p2")).await,
        "751\n755\n"
    );
    let denied = guest
        .ask(
            Method::PUT,
            &format!("/v1/files?path={dir}/n&user=65534"),
            whole("x"),
        )
        .await;
    assert_eq!(denied.error(), (403, "permission_denied".into()));
    guest.sh(&format!("chmod 777 {dir}")).await;
    let allowed = guest
        .ask(
            Method::PUT,
            &format!("/v1/files?path={dir}/n&user=65534:65533"),
            whole("x"),
        )
        .await;
    assert_eq!(allowed.status, 201);
    assert_eq!(
        guest.sh(&format!("stat -c '%u %g' {dir}/n")).await,
        "65534 65533\n"
    );
    // The rights were given back.
    assert!(
        put(&guest, "/root/.sandglass-test", "x")
            .await
            .status
            .is_success()
    );
    guest.sh(&format!("rm -r {dir} /root/.sandglass-test")).await;
}

#[tokio::test]
async fn removing_refuses_the_sandbox_itself_and_never_follows_links() {
    let guest = Guest::start().await;
    let dir = scratch(&guest).await;
    let remove = |path: String, recursive: bool| {
        let guest = &guest;
        async move {
            let target = format!(
                "/v1/files?path={}&recursive={}",
                encode(path.as_bytes()),
                u8::from(recursive)
            );
            let answer = guest.ask(Method::DELETE, &target, empty()).await;
            if answer.status.is_success() {
                (answer.status.as_u16(), String::new())
            } else {
                answer.error()
            }
        }
    };
    for path in [
        "",
        "/",
        "//",
        "/.",
        "/..",
        "/proc",
        "/sys",
        "/dev",
        "/tmp/..",
        "/tmp/../proc",
        ".",
        "/proc/",
        "/run",
        "/dev/pts",
    ] {
        assert_eq!(
            remove(path.to_owned(), true).await,
            (400, "path_invalid".to_owned()),
            "{path:?}"
        );
    }
    guest.sh(&format!("cd {dir}; mkdir -p t/a/b keep; echo x > keep/f; ln -s ../keep t/link; ln -s keep l; echo x > t/a/f; mkfifo t/p")).await;
    assert_eq!(
        remove(format!("{dir}/t"), false).await,
        (409, "directory_not_empty".to_owned())
    );
    assert_eq!(remove(format!("{dir}/t"), true).await.0, 204);
    assert_eq!(remove(format!("{dir}/l"), true).await.0, 204);
    assert_eq!(
        remove(format!("{dir}/t"), true).await,
        (404, "file_not_found".to_owned())
    );
    assert_eq!(
        guest.sh(&format!("cd {dir}; find . | sort")).await,
        ".\n./keep\n./keep/f\n"
    );
    guest.sh(&format!("rm -r {dir}")).await;
}

/// On nodes of its own: those of this machine must survive an agent that does not refuse.
#[tokio::test]
async fn devices_stay() {
    let guest = Guest::start().await;
    let dir = scratch(&guest).await;
    let id = dir.rsplit('/').next().unwrap().to_owned();
    let (node, link) = (format!("/dev/sgt-{id}"), format!("/dev/sgt-{id}-link"));
    guest
        .sh(&format!(
            "mknod {node} c 1 3; ln -s {node} {link}; echo x > {dir}/f"
        ))
        .await;
    let refused = (400, "path_invalid".to_owned());
    for path in [&node, &link] {
        let removed = guest
            .ask(Method::DELETE, &format!("/v1/files?path={path}"), empty())
            .await;
        assert_eq!(removed.error(), refused, "{path}");
        for (action, from, to) in [
            ("move", path.clone(), format!("{dir}/m")),
            ("move", format!("{dir}/f"), path.clone()),
            ("copy", format!("{dir}/f"), path.clone()),
        ] {
            let body = json!({"from": from, "to": to});
            assert_eq!(
                guest.post(&format!("/v1/files/{action}"), body).await.error(),
                refused,
                "{action} {from} {to}"
            );
        }
    }
    assert_eq!(
        guest
            .sh(&format!(
                "stat -c %F {node} {link}; cat {dir}/f; rm {node} {link}; rm -r {dir}"
            ))
            .await,
        "character special file\nsymbolic link\nx\n"
    );
}

#[tokio::test]
async fn directories_moves_copies_and_modes() {
    let guest = Guest::start().await;
    let dir = scratch(&guest).await;
    let post = |action: &str, body: Value| {
        let (guest, target) = (&guest, format!("/v1/files/{action}"));
        async move { guest.post(&target, body).await }
    };
    let at = |name: &str| format!("{dir}/{name}");
    let made = post(
        "mkdir",
        json!({"path": at("a/b"), "parents": true, "mode": "0700"}),
    )
    .await;
    assert_eq!(
        (made.status.as_u16(), &made.json()["mode"], &made.json()["type"]),
        (201, &json!("0700"), &json!("directory"))
    );
    assert_eq!(
        post("mkdir", json!({"path": at("a/b"), "parents": true}))
            .await
            .status,
        200
    );
    assert_eq!(
        post("mkdir", json!({"path": at("a/b")})).await.error(),
        (409, "file_exists".into())
    );
    assert_eq!(
        post("mkdir", json!({"path": at("x/y")})).await.error(),
        (404, "file_not_found".into())
    );
    assert_eq!(
        post("mkdir", json!({"path": "/"})).await.error(),
        (400, "path_invalid".into())
    );
    guest
        .sh(&format!(
            "cd {dir}/a; echo 1 > f; chmod 754 f; touch -d @1000 f; ln -s f l; echo 2 > b/g"
        ))
        .await;
    let copied = post("copy", json!({"from": at("a"), "to": at("c")})).await;
    assert_eq!(copied.status, 200, "{:?}", copied.bytes);
    assert_eq!(
        guest
            .sh(&format!("cd {dir}/c; stat -c '%a %Y' f; readlink l; cat b/g"))
            .await,
        "754 1000\nf\n2\n"
    );
    assert_eq!(
        post("copy", json!({"from": at("a"), "to": at("a/b/in")}))
            .await
            .error(),
        (400, "path_invalid".into())
    );
    assert_eq!(
        post(
            "copy",
            json!({"from": at("a/f"), "to": at("c/f"), "overwrite": false})
        )
        .await
        .error(),
        (409, "file_exists".into())
    );
    assert_eq!(
        post(
            "move",
            json!({"from": at("a/f"), "to": at("c/f"), "overwrite": false})
        )
        .await
        .error(),
        (409, "file_exists".into())
    );
    assert_eq!(
        post("move", json!({"from": at("a"), "to": at("a/b/in")}))
            .await
            .error(),
        (400, "path_invalid".into())
    );
    assert_eq!(
        post("move", json!({"from": at("a"), "to": at("m")})).await.status,
        200
    );
    assert_eq!(
        post("move", json!({"from": at("a"), "to": at("m2")}))
            .await
            .error(),
        (404, "file_not_found".into())
    );
    assert_eq!(
        post("move", json!({"from": "/", "to": at("m2")})).await.error(),
        (400, "path_invalid".into())
    );
    // Over a mount it is a copy and a removal.
    let shm = format!("/dev/shm/sgt-{}", dir.rsplit('/').next().unwrap());
    assert_eq!(
        post("move", json!({"from": at("m"), "to": &shm})).await.status,
        200
    );
    assert_eq!(
        guest.sh(&format!("ls {dir}; cat {shm}/b/g; rm -r {shm}")).await,
        "c\n2\n"
    );
    assert_eq!(
        post(
            "chmod",
            json!({"path": at("c"), "mode": "0750", "uid": 65534, "recursive": true})
        )
        .await
        .status,
        200
    );
    assert_eq!(
        guest.sh(&format!("cd {dir}/c; stat -c '%a %u' . f b/g l")).await,
        "750 65534\n750 65534\n750 65534\n777 65534\n"
    );
    assert_eq!(
        post("chmod", json!({"path": at("c")})).await.error(),
        (400, "invalid_request".into())
    );
    assert_eq!(
        post("chmod", json!({"path": at("c"), "mode": "9"})).await.error(),
        (400, "invalid_request".into())
    );
    let info = guest.get(&format!("/v1/files/stat?path={dir}/c/l")).await.json();
    assert_eq!(
        (&info["type"], &info["target"], &info["name"]),
        (&json!("symlink"), &json!("f"), &json!("l"))
    );
    let info = guest
        .get(&format!("/v1/files/stat?path={dir}/c/l&follow=1"))
        .await
        .json();
    assert_eq!((&info["type"], &info["size"]), (&json!("file"), &json!(2)));
    assert_eq!(
        guest.get("/v1/files/stat?path=/").await.json()["type"],
        "directory"
    );
    guest.sh(&format!("rm -r {dir}")).await;
}

#[tokio::test]
async fn a_huge_directory_is_listed_in_bounded_memory() {
    let guest = Guest::start().await;
    let dir = scratch(&guest).await;
    let entries = usize::try_from(scaled(20_000, 200_000)).unwrap();
    guest
        .sh(&format!("cd {dir}; seq 1 {entries} | xargs touch"))
        .await;
    let before = guest.resident_bytes().await;
    let started = Instant::now();
    let page = guest.get(&format!("/v1/files/list?path={dir}")).await.json();
    assert_eq!(
        (
            page["items"].as_array().unwrap().len(),
            page["items"][0]["name"].as_str()
        ),
        (1000, Some("1"))
    );
    println!("page of {entries}: {:?}", started.elapsed());
    let started = Instant::now();
    let all = guest
        .ask_with(
            Method::GET,
            &format!("/v1/files/list?path={dir}"),
            &[("accept", "application/x-ndjson")],
            empty(),
        )
        .await;
    assert_eq!(all.bytes.split(|byte| *byte == b'\n').count(), entries + 1);
    println!("all of {entries}: {:?}", started.elapsed());
    assert!(guest.resident_bytes().await < before + (8 << 20));
    let started = Instant::now();
    assert_eq!(
        guest
            .ask(
                Method::DELETE,
                &format!("/v1/files?path={dir}&recursive=1"),
                empty()
            )
            .await
            .status,
        204
    );
    println!("removed {entries}: {:?}", started.elapsed());
}

#[tokio::test]
async fn a_full_disk_is_named_and_leaves_no_trace() {
    let guest = Guest::start().await;
    if !guest.is_sandbox() {
        // Only a sandbox has a small file system of its own: /tmp with 256 MiB.
        return;
    }
    assert_eq!(put(&guest, "/tmp/f", "old").await.status, 201);
    let target = "/v1/files?path=/tmp/f";
    let answer = guest
        .ask(Method::PUT, target, generated(300 << 20, 100_000, b'x'))
        .await;
    assert_eq!(answer.error(), (507, "no_space".to_owned()));
    assert_eq!(guest.sh("ls -A /tmp; cat /tmp/f").await, "f\nold");
    let answer = guest
        .ask(
            Method::PUT,
            "/v1/files?path=/tmp/g",
            generated(200 << 20, 100_000, b'x'),
        )
        .await;
    assert_eq!(answer.status, 201, "the space was given back");
}

#[tokio::test]
async fn moving_refuses_the_sandbox_itself_at_both_ends() {
    let guest = Guest::start().await;
    let dir = scratch(&guest).await;
    guest.sh(&format!("echo x > {dir}/file")).await;
    let refused = (400, "path_invalid".to_owned());
    for path in ["/", "/proc", "/sys", "/dev", "/run"] {
        let away = serde_json::json!({"from": path, "to": format!("{dir}/moved")});
        assert_eq!(
            guest.post("/v1/files/move", away).await.error(),
            refused,
            "from {path}"
        );
        let over = serde_json::json!({"from": format!("{dir}/file"), "to": path});
        assert_eq!(
            guest.post("/v1/files/move", over).await.error(),
            refused,
            "to {path}"
        );
    }
    assert_eq!(guest.sh(&format!("ls {dir}; rm -r {dir}")).await, "file\n");
}
