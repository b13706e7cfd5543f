//! Files: all work happens inside the guest, by paths the guest resolves, with the rights of the requested user.

pub mod archive_read;
pub mod archive_routes;
pub mod archive_write;
pub mod as_user;
pub mod chmod;
pub mod copy;
pub mod directory;
pub mod etag;
pub mod info;
pub mod list;
pub mod long_work;
pub mod mkdir;
pub mod moves;
pub mod path;
pub mod preconditions;
pub mod protected;
pub mod range;
pub mod read;
pub mod remove;
pub mod routes;
pub mod stat;
pub mod watch;
pub mod watch_routes;
pub mod write;
