//! A host for tests: starts the agent as an ordinary process on a socket of its own and speaks HTTP/2 to it.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame as BodyFrame, Incoming};
use hyper::client::conn::http2::{self, SendRequest};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use sandglass_guest::frames::{self, Frame};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

pub type Body = BoxBody<Bytes, std::io::Error>;

/// Every wait of the tests ends.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// The size of a test: small, or with `SANDGLASS_TEST_SCALE=full` that of the promise it stands for.
pub fn scaled(small: u64, full: u64) -> u64 {
    if std::env::var("SANDGLASS_TEST_SCALE").is_ok_and(|scale| scale == "full") {
        full
    } else {
        small
    }
}

static SERIAL: AtomicU32 = AtomicU32::new(0);

/// How the agent is run: as an ordinary process, or as PID 1 of a gVisor sandbox when the environment names a
/// `runsc` (`SANDGLASS_GUEST_RUNSC`) and a root file system (`SANDGLASS_GUEST_ROOTFS`).
enum Runner {
    Process(Child),
    Sandbox {
        runsc: String,
        id: String,
        state: PathBuf,
    },
}

pub struct Guest {
    runner: Runner,
    pub directory: PathBuf,
    listener: UnixListener,
    pub hello: Value,
    pub client: SendRequest<Body>,
}

pub struct Answer {
    pub status: StatusCode,
    pub headers: hyper::HeaderMap,
    pub trailers: Option<hyper::HeaderMap>,
    pub bytes: Bytes,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|_| panic!("not JSON: {:?}", self.bytes))
    }

    pub fn error(&self) -> (u16, String) {
        (
            self.status.as_u16(),
            self.json()["code"].as_str().unwrap_or_default().to_owned(),
        )
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl Guest {
    pub async fn start() -> Self {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("sgt-{}-{serial}", std::process::id()));
        let channel = directory.join("channel");
        std::fs::create_dir_all(&channel).unwrap();
        let listener = UnixListener::bind(channel.join("channel.sock")).unwrap();
        // The binary that was built for the tests, unless a shipped one is to be tried.
        let shipped = std::env::var("SANDGLASS_GUEST_BINARY");
        let binary = shipped
            .as_deref()
            .unwrap_or(env!("CARGO_BIN_EXE_sandglass-guest"));
        let runner = match (
            std::env::var("SANDGLASS_GUEST_RUNSC"),
            std::env::var("SANDGLASS_GUEST_ROOTFS"),
        ) {
            (Ok(runsc), Ok(rootfs)) => {
                let id = format!("sgt{}x{serial}", std::process::id());
                start_sandbox(runsc, &rootfs, id, &directory, binary)
            }
            _ => {
                let mut command = Command::new(binary);
                command.arg("--channel").arg(channel.join("channel.sock"));
                command
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null());
                // SAFETY: one plain call between fork and exec. A test run that is killed takes its agents along.
                unsafe {
                    command.pre_exec(|| {
                        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                        Ok(())
                    });
                }
                Runner::Process(command.spawn().unwrap())
            }
        };
        let (hello, client) = session(&listener).await;
        Self {
            runner,
            directory,
            listener,
            hello,
            client,
        }
    }

    /// Whether this is a sandbox of its own, with a root file system that may be changed.
    pub fn is_sandbox(&self) -> bool {
        matches!(self.runner, Runner::Sandbox { .. })
    }

    /// Ends the session and takes the next one.
    pub async fn reconnect(&mut self) {
        // Dropping the only sender closes the HTTP/2 session.
        let (hello, client) = {
            let (placeholder, _) = idle_client().await;
            drop(std::mem::replace(&mut self.client, placeholder));
            session(&self.listener).await
        };
        self.hello = hello;
        self.client = client;
    }

    /// The agent's pid, as its processes see it.
    pub fn pid(&self) -> u32 {
        match &self.runner {
            Runner::Process(child) => child.id(),
            Runner::Sandbox { .. } => 1,
        }
    }

    pub async fn send(&self, method: Method, target: &str, body: Body) -> Response<Incoming> {
        self.send_with(method, target, &[], body).await
    }

    pub async fn send_with(
        &self,
        method: Method,
        target: &str,
        headers: &[(&str, &str)],
        body: Body,
    ) -> Response<Incoming> {
        let mut client = self.client.clone();
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://guest{target}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body).unwrap();
        let response = async {
            client.ready().await.unwrap();
            client.send_request(request).await.unwrap()
        };
        tokio::time::timeout(PATIENCE, response).await.expect("no answer")
    }

    /// For bodies that take minutes.
    pub async fn ask_slowly(&self, method: Method, target: &str, body: Body) -> Answer {
        let mut client = self.client.clone();
        let request = Request::builder()
            .method(method)
            .uri(format!("http://guest{target}"))
            .body(body)
            .unwrap();
        client.ready().await.unwrap();
        let answer = tokio::time::timeout(20 * PATIENCE, client.send_request(request))
            .await
            .expect("no answer")
            .unwrap();
        let (parts, body) = answer.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            status: parts.status,
            headers: parts.headers,
            trailers: None,
            bytes,
        }
    }

    pub async fn ask(&self, method: Method, target: &str, body: Body) -> Answer {
        self.ask_with(method, target, &[], body).await
    }

    pub async fn ask_with(
        &self,
        method: Method,
        target: &str,
        headers: &[(&str, &str)],
        body: Body,
    ) -> Answer {
        let response = self.send_with(method, target, headers, body).await;
        let (parts, body) = response.into_parts();
        let collected = tokio::time::timeout(PATIENCE, body.collect())
            .await
            .expect("no end")
            .unwrap();
        let trailers = collected.trailers().cloned();
        Answer {
            status: parts.status,
            headers: parts.headers,
            trailers,
            bytes: collected.to_bytes(),
        }
    }

    pub async fn get(&self, target: &str) -> Answer {
        self.ask(Method::GET, target, empty()).await
    }

    pub async fn post(&self, target: &str, json: Value) -> Answer {
        self.ask(Method::POST, target, whole(json.to_string())).await
    }

    pub async fn exec(&self, start: Value) -> Output {
        let mut stream = self.exec_stream("/v1/exec", start).await;
        stream.finish().await
    }

    pub async fn exec_stream(&self, target: &str, start: Value) -> FrameStream {
        let response = self.send(Method::POST, target, whole(start.to_string())).await;
        FrameStream::new(response).await
    }

    pub async fn output_stream(&self, id: &str, query: &str) -> FrameStream {
        FrameStream::new(
            self.send(
                Method::GET,
                &format!("/v1/processes/{id}/output?{query}"),
                empty(),
            )
            .await,
        )
        .await
    }

    /// Runs a shell command to its end and gives what it printed.
    pub async fn sh(&self, script: &str) -> String {
        let output = self
            .exec(serde_json::json!({"argv": ["/bin/sh", "-c", script]}))
            .await;
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub async fn open_fds(&self) -> usize {
        self.count(&format!("ls /proc/{}/fd | wc -l", self.pid())).await
    }

    pub async fn threads(&self) -> usize {
        self.count(&format!("ls /proc/{}/task | wc -l", self.pid())).await
    }

    pub async fn resident_bytes(&self) -> usize {
        self.count(&format!("cut -d' ' -f2 /proc/{}/statm", self.pid()))
            .await
            * 4096
    }

    /// Child processes of the agent, zombies included, without the one that counts.
    pub async fn children(&self) -> usize {
        self.count(&format!(
            "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') . {} '",
            self.pid()
        ))
        .await
            - 1
    }

    async fn count(&self, script: &str) -> usize {
        let printed = self.sh(script).await;
        printed
            .trim()
            .parse()
            .unwrap_or_else(|_| panic!("{script} printed {printed:?}"))
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        match &mut self.runner {
            Runner::Process(child) => {
                // What the tests left running must not outlive them.
                for pid in descendants(child.id()) {
                    let _ = Command::new("kill")
                        .args(["-KILL", &pid.to_string()])
                        .stderr(Stdio::null())
                        .status();
                }
                let _ = child.kill();
                let _ = child.wait();
            }
            Runner::Sandbox { runsc, id, state } => {
                let _ = Command::new(runsc)
                    .arg(format!("--root={}", state.display()))
                    .args(["delete", "--force", id])
                    .status();
                let _ = Command::new("umount")
                    .arg(state.join("null-netns"))
                    .stderr(Stdio::null())
                    .status();
            }
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn descendants(root: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok())
        .filter_map(|stat| {
            let pid = stat.split(' ').next()?.parse().ok()?;
            let parent = stat.rsplit_once(')')?.1.split(' ').nth(2)?.parse().ok()?;
            Some((pid, parent))
        })
        .collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(
            parents
                .iter()
                .filter(|(_, of)| *of == parent)
                .map(|(pid, _)| *pid),
        );
        next += 1;
    }
    found.split_off(1)
}

fn start_sandbox(
    runsc: String,
    rootfs: &str,
    id: String,
    directory: &std::path::Path,
    binary: &str,
) -> Runner {
    let channel = directory.join("channel");
    let state = directory.join("state");
    let overlay = directory.join("overlay");
    for made in [&state, &overlay] {
        std::fs::create_dir_all(made).unwrap();
    }
    std::fs::copy(binary, channel.join("agent")).unwrap();
    let capabilities = [
        "CHOWN",
        "DAC_OVERRIDE",
        "FSETID",
        "FOWNER",
        "SETGID",
        "SETUID",
        "SETPCAP",
        "NET_BIND_SERVICE",
        "SYS_CHROOT",
        "KILL",
        "AUDIT_WRITE",
        "SETFCAP",
        "MKNOD",
    ]
    .map(|name| format!("CAP_{name}"));
    let mount = |destination: &str, kind: &str, options: &[&str]| serde_json::json!({"destination": destination, "type": kind, "source": kind, "options": options});
    let mut bind = mount("/run/sandglass", "bind", &["bind", "ro", "nosuid", "nodev"]);
    bind["source"] = channel.to_str().unwrap().into();
    let spec = serde_json::json!({
        "ociVersion": "1.2.1",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": ["/run/sandglass/agent", "--channel", "/run/sandglass/channel.sock"],
            "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "cwd": "/",
            "capabilities": {"bounding": capabilities, "effective": capabilities, "permitted": capabilities},
            "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 65536, "soft": 1024}]
        },
        "root": {"path": rootfs},
        "hostname": "sandbox",
        "mounts": [
            mount("/proc", "proc", &[]),
            mount("/dev", "tmpfs", &[]),
            mount("/dev/pts", "devpts", &["newinstance", "ptmxmode=0666", "mode=0620"]),
            mount("/dev/shm", "tmpfs", &["mode=1777", "size=64m"]),
            mount("/sys", "sysfs", &["ro"]),
            mount("/sys/fs/cgroup", "cgroup", &[]),
            mount("/tmp", "tmpfs", &["mode=1777", "size=256m"]),
            bind
        ],
        "linux": {"namespaces": [{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}, {"type": "network"}]}
    });
    std::fs::write(directory.join("config.json"), spec.to_string()).unwrap();
    let status = Command::new(&runsc)
        .arg(format!("--root={}", state.display()))
        .args([
            "--platform=systrap",
            "--network=none",
            "--host-uds=open",
            "--ignore-cgroups",
            "--in-sandbox-cgroup=v2",
        ])
        .arg(format!("--overlay2=root:dir={},size=1024m", overlay.display()))
        .args(["run", "--detach", "--bundle"])
        .arg(directory)
        .arg(&id)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "runsc did not start the sandbox");
    Runner::Sandbox { runsc, id, state }
}

async fn accept(listener: &UnixListener) -> (Value, UnixStream) {
    let (socket, _) = tokio::time::timeout(PATIENCE, listener.accept())
        .await
        .expect("no dial")
        .unwrap();
    let mut reader = BufReader::new(socket);
    let mut line = String::new();
    reader.read_line(&mut line).await.unwrap();
    assert!(
        reader.buffer().is_empty(),
        "the guest spoke before it was answered"
    );
    (serde_json::from_str(&line).unwrap(), reader.into_inner())
}

async fn session(listener: &UnixListener) -> (Value, SendRequest<Body>) {
    let (hello, mut socket) = accept(listener).await;
    socket
        .write_all(b"{\"accept\":true,\"version\":1,\"epoch\":1}\n")
        .await
        .unwrap();
    (hello, handshake(socket).await)
}

async fn handshake(socket: UnixStream) -> SendRequest<Body> {
    let (client, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(16 << 20)
        .handshake(TokioIo::new(socket))
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

async fn idle_client() -> (SendRequest<Body>, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (handshake(ours).await, theirs)
}

pub fn empty() -> Body {
    Full::new(Bytes::new()).map_err(|never| match never {}).boxed()
}

pub fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed()
}

/// A body of `total` bytes made piece by piece.
pub fn generated(total: u64, piece: usize, byte: u8) -> Body {
    let mut left = total;
    let pieces = std::iter::from_fn(move || {
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(piece);
        left -= length as u64;
        (length > 0).then(|| Ok(BodyFrame::data(Bytes::from(vec![byte; length]))))
    });
    StreamBody::new(Pieces(pieces)).boxed()
}

/// A body fed by the test; dropping the sender with `Err` resets the stream.
pub fn fed() -> (tokio::sync::mpsc::Sender<Result<Bytes, std::io::Error>>, Body) {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    (sender, StreamBody::new(Fed(receiver)).boxed())
}

struct Pieces<I>(I);

impl<I: Iterator + Unpin> futures_core::Stream for Pieces<I> {
    type Item = I::Item;
    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<I::Item>> {
        std::task::Poll::Ready(self.0.next())
    }
}

struct Fed(tokio::sync::mpsc::Receiver<Result<Bytes, std::io::Error>>);

impl futures_core::Stream for Fed {
    type Item = Result<BodyFrame<Bytes>, std::io::Error>;
    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0
            .poll_recv(cx)
            .map(|item| item.map(|result| result.map(BodyFrame::data)))
    }
}

/// A frame stream being read.
pub struct FrameStream {
    pub status: StatusCode,
    body: Incoming,
    buffer: BytesMut,
}

#[derive(Debug, Default)]
pub struct Output {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub gaps: Vec<Value>,
    pub started: Value,
    /// The last status, `exit` or `end`.
    pub last: Value,
}

impl Output {
    pub fn process(&self) -> &Value {
        &self.last["process"]
    }

    pub fn exit_code(&self) -> i64 {
        assert_eq!(self.last["type"], "exit", "{:?}", self.last);
        self.process()["exit_code"].as_i64().unwrap_or(-1)
    }
}

impl FrameStream {
    pub async fn new(response: Response<Incoming>) -> Self {
        let status = response.status();
        if status != StatusCode::OK {
            let bytes = response.into_body().collect().await.unwrap().to_bytes();
            panic!("{status}: {}", String::from_utf8_lossy(&bytes));
        }
        assert_eq!(
            response.headers()["content-type"],
            "application/vnd.sandglass.frames"
        );
        Self {
            status,
            body: response.into_body(),
            buffer: BytesMut::new(),
        }
    }

    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = frames::take(&mut self.buffer).unwrap() {
                return Some(frame);
            }
            let more = tokio::time::timeout(PATIENCE, self.body.frame())
                .await
                .expect("no frame");
            self.buffer.extend_from_slice(&more?.ok()?.into_data().unwrap());
        }
    }

    /// Reads until the output holds `wanted`; what was read so far.
    pub async fn until(&mut self, wanted: &str) -> String {
        tokio::time::timeout(PATIENCE, self.read_until(wanted))
            .await
            .unwrap_or_else(|_| panic!("never saw {wanted:?}"))
    }

    async fn read_until(&mut self, wanted: &str) -> String {
        let mut seen = String::new();
        while !seen.contains(wanted) {
            match self.next().await {
                Some(Frame::Output { bytes, .. }) => seen.push_str(&String::from_utf8_lossy(&bytes)),
                Some(Frame::Status(json)) if !json.starts_with(b"{\"type\":\"exit\"") => {}
                other => panic!("ended before {wanted:?}: {seen:?} {other:?}"),
            }
        }
        seen
    }

    pub async fn started(&mut self) -> Value {
        match self.next().await {
            Some(Frame::Status(json)) => {
                let started: Value = serde_json::from_slice(&json).unwrap();
                assert_eq!(started["type"], "started");
                started["process"].clone()
            }
            other => panic!("not started: {other:?}"),
        }
    }

    /// Reads to the end, checking that offsets and gaps leave no byte unaccounted for.
    pub async fn finish(&mut self) -> Output {
        tokio::time::timeout(2 * PATIENCE, self.read_all())
            .await
            .expect("never ended")
    }

    async fn read_all(&mut self) -> Output {
        let mut output = Output::default();
        let mut next: [Option<u64>; 2] = [None, None];
        while let Some(frame) = self.next().await {
            match frame {
                Frame::Output {
                    channel,
                    offset,
                    bytes,
                } => {
                    let index = usize::from(channel - 1);
                    assert!(
                        next[index].is_none_or(|expected| expected == offset),
                        "hole at {offset}"
                    );
                    next[index] = Some(offset + bytes.len() as u64);
                    [&mut output.stdout, &mut output.stderr][index].extend_from_slice(&bytes);
                }
                Frame::Status(json) => {
                    let status: Value = serde_json::from_slice(&json).unwrap();
                    match status["type"].as_str().unwrap() {
                        "started" => output.started = status["process"].clone(),
                        "gap" => {
                            let index = usize::from(status["stream"] == "stderr");
                            next[index] = status["to"].as_u64();
                            output.gaps.push(status);
                        }
                        "heartbeat" => {}
                        _ => output.last = status,
                    }
                }
            }
        }
        assert!(!output.last.is_null(), "lost contact: {output:?}");
        output
    }
}

pub async fn read_some(socket: &mut UnixStream) -> usize {
    let mut buffer = [0; 64];
    socket.read(&mut buffer).await.unwrap()
}
