//! The tar format: headers, a reader that is fed, a writer that is asked.
//!
//! Written here rather than taken from a library, because an archive from outside is hostile input: known libraries
//! drop entries with a warning, keep setuid bits, or follow links while extracting. Nothing in this module touches
//! the file system.

pub mod header;
pub mod pax;
pub mod reader;
pub mod writer;
