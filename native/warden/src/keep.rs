//! The warden's loop: it sleeps until somebody speaks or the deadline comes, and then makes the group what the deadline says.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::client::Client;
use crate::clock::{self, NS_PER_MS, Timer};
use crate::deadline::Deadline;
use crate::deadline_file::DeadlineFile;
use crate::freezer::Freezer;
use crate::protocol::{self, Request};
use crate::{privilege, readiness, sole};

const CLIENTS: usize = 8;
/// A group that cannot be frozen is tried again.
const RETRY_NS: u64 = 50 * NS_PER_MS;

pub enum Kept {
    /// It was told that nothing runs any more.
    Ended,
    /// Another warden of this installation lives.
    Taken,
}

pub struct Place {
    /// Of control groups (version 2): everything of sandboxes is below it.
    pub group: PathBuf,
    /// Of this installation, gone after a reboot at the latest: lock, socket and deadline.
    pub run: PathBuf,
}

struct Warden {
    freezer: Freezer,
    file: DeadlineFile,
    deadline: Deadline,
    /// `None`: the group could not be made what it should be.
    frozen: Option<bool>,
    /// It was frozen or let go, and nobody has been told.
    untold: bool,
    clients: Vec<Client>,
    timer: Timer,
}

/// Returns when it is told to end.
pub fn keep(place: &Place) -> io::Result<Kept> {
    DirBuilder::new().recursive(true).mode(0o700).create(&place.run)?;
    let Some(_lock) = sole::take(&place.run.join("lock"))? else {
        return Ok(Kept::Taken);
    };
    let refused = privilege::take();
    let file = DeadlineFile::of_this_boot(&place.run.join("deadline"))?;
    let deadline = file.read().as_found(clock::now_ns()?);
    let mut warden = Warden {
        freezer: Freezer::new(&place.group),
        file,
        deadline,
        frozen: None,
        untold: false,
        clients: Vec::new(),
        timer: Timer::new()?,
    };
    // Before anybody is listened to: it begins closed. Where there is no freezer, there is no warden.
    warden.freezer.set(deadline.has_passed(clock::now_ns()?))?;
    warden.obey_deadline()?;
    let listener = listen(&place.run.join("socket"))?;
    log(
        "keeps",
        &format!("deadline_ns={} refused={}", deadline.at_ns(), refused.join(",")),
    );
    while warden.turn(&listener)? {}
    warden.file.remove();
    let _ = fs::remove_dir_all(&place.run);
    log("ended", "");
    Ok(Kept::Ended)
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    // The lock is held, so whoever made it is dead.
    let _ = fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

impl Warden {
    /// Makes the group what the deadline says, and sets the timer to when it says otherwise.
    fn obey_deadline(&mut self) -> io::Result<()> {
        let now = clock::now_ns()?;
        let passed = self.deadline.has_passed(now);
        match self.freezer.set(passed) {
            Ok(()) => {
                if self.frozen != Some(passed) {
                    let late_us = now.saturating_sub(self.deadline.at_ns()) / 1_000;
                    log(
                        if passed { "frozen" } else { "open" },
                        &format!("late_us={}", if passed { late_us } else { 0 }),
                    );
                    self.frozen = Some(passed);
                    self.untold = true;
                }
                self.timer.set((!passed).then(|| self.deadline.at_ns()))
            }
            Err(cause) => {
                if self.frozen.is_some() {
                    log("stuck", &cause.to_string());
                }
                self.frozen = None;
                self.timer.set(Some(now + RETRY_NS))
            }
        }
    }

    fn tell_all(&mut self) -> io::Result<()> {
        let line = self.state(protocol::CHANGED, clock::now_ns()?);
        self.clients.retain_mut(|client| client.tell(&line));
        self.untold = false;
        Ok(())
    }

    /// A group that could not be let go is not open.
    fn state(&self, word: &str, now_ns: u64) -> String {
        protocol::state_line(word, now_ns, self.deadline, self.frozen != Some(false))
    }

    /// False when it is to end.
    fn turn(&mut self, listener: &UnixListener) -> io::Result<bool> {
        let mut descriptors = vec![self.timer.raw(), listener.as_raw_fd()];
        descriptors.extend(self.clients.iter().map(Client::raw));
        let mut ready = readiness::wait(&descriptors, None)?.into_iter().skip(1);
        if ready.next() == Some(true) {
            self.admit(listener);
        }
        let mut ends = false;
        let waiting = std::mem::take(&mut self.clients);
        for mut client in waiting {
            if ready.next() != Some(true) {
                self.clients.push(client);
                continue;
            }
            let Some(requests) = client.requests() else {
                continue;
            };
            let mut stays = true;
            for request in requests {
                let (line, last) = self.answer(request)?;
                stays = stays && client.tell(&line);
                ends = ends || last;
            }
            if stays {
                self.clients.push(client);
            }
        }
        self.obey_deadline()?;
        if self.untold {
            self.tell_all()?;
        }
        Ok(!ends)
    }

    /// The newest comes in the place of the oldest: one that was left behind holds up nobody.
    fn admit(&mut self, listener: &UnixListener) {
        while let Ok((stream, _)) = listener.accept() {
            if self.clients.len() >= CLIENTS {
                self.clients.remove(0);
            }
            self.clients.extend(Client::admit(stream));
        }
    }

    /// The line, and whether it was the last.
    fn answer(&mut self, request: Request) -> io::Result<(String, bool)> {
        let now = clock::now_ns()?;
        match request {
            Request::State => {}
            Request::Sent { sent_ns, for_ms } => match self.deadline.renewed(now, sent_ns, for_ms) {
                Ok(next) => {
                    if next != self.deadline {
                        // On disk first: a file that is behind makes a shorter deadline, never a longer one.
                        if let Err(cause) = self.file.write(next) {
                            log("unwritten", &cause.to_string());
                        }
                        self.deadline = next;
                    }
                    self.obey_deadline()?;
                }
                Err(refusal) => return Ok((format!("refused {}\n", refusal.word()), false)),
            },
            Request::End if self.freezer.is_populated() => {
                return Ok(("refused populated\n".to_owned(), false));
            }
            Request::End => return Ok(("ending\n".to_owned(), true)),
        }
        Ok((self.state(protocol::STATE, clock::now_ns()?), false))
    }
}

fn log(event: &str, detail: &str) {
    // Whoever reads standard error may be gone; that is no reason to end.
    let _ = io::Write::write_all(&mut io::stderr(), format!("warden {event} {detail}\n").as_bytes());
}
