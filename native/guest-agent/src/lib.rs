//! The guest agent: PID 1 of every Sandglass sandbox.
//!
//! It dials the host's socket, and on that one channel serves HTTP/2: processes, terminals, files. Start reading at
//! `main.rs`, then `channel::session` (how a session comes to be), `http::router` (every endpoint), and from there
//! the module named like the noun.

pub mod agent;
pub mod blocking;
pub mod boot;
pub mod cgroup;
pub mod channel;
pub mod clock;
pub mod errors;
pub mod files;
pub mod frames;
pub mod health;
pub mod housekeeping;
pub mod http;
pub mod identity;
pub mod limits;
pub mod naming;
pub mod process;
pub mod random;
#[cfg(test)]
mod seeded;
pub mod sync;
pub mod tar;
pub mod users;
