//! Forgets exited processes: first their output, by age and by size of all, then the result, by count.

use std::time::Instant;

use super::record::Stream;
use super::table::Table;
use crate::limits::{OUTPUT_RETENTION, OUTPUT_RETENTION_MAX_BYTES, RESULTS_MAX};

pub fn sweep(table: &Table) {
    let exited = table.exited_records();
    let now = Instant::now();
    let mut held: usize = 0;
    // Newest first, so that the oldest lose their output when there is too much.
    for (newer, record) in exited.iter().rev().enumerate() {
        if newer >= RESULTS_MAX {
            table.forget(&record.facts.id);
            continue;
        }
        let (bytes, old, idle) = record.look(|changing| {
            let old = changing
                .ended
                .is_some_and(|ended| now.saturating_duration_since(ended.at) > OUTPUT_RETENTION);
            (changing.held_bytes(), old, changing.settled.is_some())
        });
        held = held.saturating_add(bytes);
        if bytes > 0 && idle && (old || held > OUTPUT_RETENTION_MAX_BYTES) {
            held = held.saturating_sub(bytes);
            record.change(|changing| {
                for stream in Stream::BOTH {
                    changing.output.of_mut(stream).ring.clear();
                }
            });
        }
    }
}
