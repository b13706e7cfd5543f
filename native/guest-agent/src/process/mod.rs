//! Processes: from a start request to a result that is kept for a while.
//!
//! `start_request` parses, `plan` resolves (user, environment, directory), `spawn` runs it, `record` is what is
//! known about one process, `table` holds them all, `output` moves bytes from pipe to ring, `follow` from ring
//! to client, `reaper` collects exits, `lineage` finds a tree, `terminate` ends it, `retention` forgets.

pub mod child;
pub mod environment;
pub mod follow;
pub mod group;
pub mod lineage;
pub mod output;
pub mod plan;
pub mod pty;
pub mod reaper;
pub mod record;
pub mod retention;
pub mod ring;
pub mod routes;
pub mod scan;
pub mod signals;
pub mod spawn;
pub mod start;
pub mod start_request;
pub mod stdin;
pub mod stdin_stream;
pub mod table;
pub mod terminate;
pub mod view;
