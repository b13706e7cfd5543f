//! The warden: a process beside the host agent that keeps the deadline of the host's lease and the freezer of its sandboxes.
//!
//! A host whose lease has run out may be fenced, and what it runs be started elsewhere, by parties that it cannot hear. So whatever becomes of the
//! host agent (stopped, dead, without memory, cut off), its sandboxes stop by themselves at the deadline. guard: warden.apart.
//!
//! What must stay true:
//! - Only the moment at which a renewal was *sent* moves the deadline, and only forward (renew.sent, `deadline.rs`).
//! - No restart, of the agent or of the warden, moves it: it is in a file that names the boot of the machine (restart.deadline, `deadline_file.rs`).
//! - Everything of sandboxes runs inside of one control group, also a launch that is still on its way (launch.gate, `launch.rs`).
//! - It begins closed: without a deadline that lies ahead, the group is frozen.

pub mod client;
pub mod clock;
pub mod deadline;
pub mod deadline_file;
pub mod freezer;
pub mod keep;
pub mod launch;
pub mod privilege;
pub mod protocol;
pub mod readiness;
pub mod sole;
