//! A warden of its own for one test: the binary, with a real control group where the machine gives one, and a directory that looks like one.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub const BINARY: &str = env!("CARGO_BIN_EXE_sandglass-warden");
pub const SOON: Duration = Duration::from_secs(5);

static PLACES: AtomicU32 = AtomicU32::new(0);

/// Of control groups, version 2. Tests of the freezer itself fail where there is none: the product refuses such a machine too.
fn unified() -> PathBuf {
    fs::read_to_string("/proc/mounts")
        .unwrap()
        .lines()
        .find_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let point = fields.next()?;
            (fields.next()? == "cgroup2").then(|| PathBuf::from(point))
        })
        .expect("control groups of version 2 are mounted")
}

pub struct Place {
    pub group: PathBuf,
    pub run: PathBuf,
    directory: PathBuf,
    wardens: Vec<Child>,
    others: Vec<Child>,
}

impl Place {
    pub fn new() -> Self {
        let name = format!(
            "sandglass-wt{}n{}",
            std::process::id(),
            PLACES.fetch_add(1, Ordering::Relaxed)
        );
        let directory = std::env::temp_dir().join(&name);
        fs::create_dir_all(&directory).unwrap();
        Self {
            group: unified().join(name),
            run: directory.join("run"),
            directory,
            wardens: Vec::new(),
            others: Vec::new(),
        }
    }

    /// Starts a warden and waits until it listens.
    pub fn keep(&mut self) -> u32 {
        let child = self.spawn();
        let pid = child.id();
        self.wardens.push(child);
        wait_for("a warden that listens", || {
            UnixStream::connect(self.run.join("socket")).ok()
        });
        pid
    }

    pub fn spawn(&self) -> Child {
        Command::new(BINARY)
            .arg("keep")
            .arg("--group")
            .arg(&self.group)
            .arg("--run")
            .arg(&self.run)
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    pub fn kill_warden(&mut self) {
        let mut child = self.wardens.pop().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub fn warden(&mut self) -> &mut Child {
        self.wardens.last_mut().unwrap()
    }

    pub fn talk(&self) -> Talk {
        Talk::to(&self.run)
    }

    pub fn is_frozen(&self) -> bool {
        fs::read_to_string(self.group.join("cgroup.events"))
            .unwrap()
            .contains("frozen 1")
    }

    pub fn is_populated(&self) -> bool {
        fs::read_to_string(self.group.join("cgroup.events"))
            .unwrap()
            .contains("populated 1")
    }

    pub fn until_frozen(&self, frozen: bool) {
        wait_for("the freezer", || (self.is_frozen() == frozen).then_some(()));
    }

    /// Launches a program that writes a line to a file again and again.
    pub fn ticker(&mut self) -> Ticker {
        let file = self.directory.join(format!("ticks{}", self.others.len()));
        let script = format!("while :; do echo tick >> {}; sleep 0.005; done", file.display());
        self.launch("sh", &["-c", &script]);
        Ticker { file }
    }

    pub fn launch(&mut self, program: &str, arguments: &[&str]) -> u32 {
        self.launch_as("become", program, arguments)
    }

    pub fn launch_as(&mut self, how: &str, program: &str, arguments: &[&str]) -> u32 {
        let child = Command::new(BINARY)
            .arg(how)
            .arg(self.group.join("sandglass-gate"))
            .arg(program)
            .args(arguments)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let pid = child.id();
        self.others.push(child);
        pid
    }

    pub fn wait_launched(&mut self) -> Option<i32> {
        self.others.pop().unwrap().wait().unwrap().code()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for child in self.wardens.iter_mut().chain(&mut self.others) {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::write(self.group.join("cgroup.kill"), "1");
        let began = Instant::now();
        while self.group.exists() && began.elapsed() < SOON {
            let _ = fs::remove_dir(self.group.join("sandglass-gate"));
            let _ = fs::remove_dir(&self.group);
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

pub struct Ticker {
    file: PathBuf,
}

impl Ticker {
    pub fn ticks(&self) -> u64 {
        fs::metadata(&self.file).map_or(0, |file| file.len())
    }

    pub fn until_it_ticks(&self) {
        let before = self.ticks();
        wait_for("a tick", || (self.ticks() > before).then_some(()));
    }

    /// Nothing in a time in which many ticks would come.
    pub fn stands_still(&self) -> bool {
        let before = self.ticks();
        std::thread::sleep(Duration::from_millis(150));
        self.ticks() == before
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub now_ns: u64,
    pub deadline_ns: u64,
    pub frozen: bool,
    pub pid: u32,
}

pub struct Talk {
    stream: BufReader<UnixStream>,
}

impl Talk {
    pub fn to(run: &Path) -> Self {
        let stream = UnixStream::connect(run.join("socket")).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        Self {
            stream: BufReader::new(stream),
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes);
    }

    /// Whatever comes next; empty when the connection has ended.
    pub fn any_line(&mut self) -> String {
        let mut line = String::new();
        let _ = self.stream.read_line(&mut line);
        line.trim_end().to_owned()
    }

    /// The next answer.
    pub fn line(&mut self) -> String {
        loop {
            let line = self.any_line();
            if !line.starts_with("changed ") {
                return line;
            }
        }
    }

    /// The next that comes unasked.
    pub fn told(&mut self) -> State {
        loop {
            let line = self.any_line();
            assert_ne!(line, "");
            if let Some(rest) = line.strip_prefix("changed ") {
                return state_of(&format!("state {rest}"));
            }
        }
    }

    pub fn ask(&mut self, line: &str) -> String {
        self.send(format!("{line}\n").as_bytes());
        self.line()
    }

    pub fn state(&mut self) -> State {
        state_of(&self.ask("state"))
    }

    /// As the host agent does it: asks for the time, sends, is answered.
    pub fn renew(&mut self, for_ms: u64) -> State {
        let sent = self.state().now_ns;
        state_of(&self.ask(&format!("sent {sent} {for_ms}")))
    }
}

pub fn state_of(line: &str) -> State {
    let words: Vec<&str> = line.split(' ').collect();
    assert!(
        words.len() == 6 && words[0] == "state" && words[1] == "1",
        "{line:?}"
    );
    State {
        now_ns: words[2].parse().unwrap(),
        deadline_ns: words[3].parse().unwrap(),
        frozen: words[4] == "frozen",
        pid: words[5].parse().unwrap(),
    }
}

pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < SOON, "waited for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
