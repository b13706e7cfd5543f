//! The one channel to the host: dial, preamble, HTTP/2 with the guest as server.
//!
//! Dialling rather than listening: a socket file cannot be replaced under a running sandbox, but a directory can get
//! a new listener, so after a restart of the host agent the next dial finds it. One session at a time, so that a
//! stale host and a new one never both drive the guest. The end of a session cancels its requests and nothing else.

pub mod preamble;
mod redial;
pub mod session;
