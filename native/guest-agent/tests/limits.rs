//! The limits that the contract tells clients are those that the agent holds.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::Duration;

use sandglass_guest::limits;
use serde_json::{Value, json};

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap()
}

#[test]
fn limits_are_those_of_the_contract() {
    let own = [
        json!({"name": "guestPreambleBytes", "value": limits::PREAMBLE_MAX_BYTES}),
        json!({"name": "guestStreams", "value": limits::CONCURRENT_STREAMS_MAX}),
        json!({"name": "guestStreamWindowBytes", "value": limits::STREAM_WINDOW_BYTES}),
        json!({"name": "guestHeaderBytes", "value": limits::HEADER_LIST_MAX_BYTES}),
        json!({"name": "guestFrameBytes", "value": limits::FRAME_PAYLOAD_MAX_BYTES}),
        json!({"name": "guestJsonBytes", "value": limits::JSON_BODY_MAX_BYTES}),
        json!({"name": "stdinReceiptBytes", "value": limits::STDIN_RECEIPT_BYTES}),
        json!({"name": "argvEntries", "value": limits::ARGV_MAX}),
        json!({"name": "cwdBytes", "value": limits::PATH_MAX_BYTES}),
        json!({"name": "processKeyCharacters", "value": limits::KEY_MAX_BYTES}),
        json!({"name": "processTimeoutMs", "value": limits::TIMEOUT_MAX_MS}),
        json!({"name": "terminalColumns", "value": limits::TERMINAL_SIDE_MAX}),
        json!({"name": "terminalRows", "value": limits::TERMINAL_SIDE_MAX}),
        json!({"name": "outputWindowBytes", "value": limits::OUTPUT_WINDOW_BYTES}),
        json!({"name": "exitDrainMs", "value": millis(limits::DRAIN_QUIET)}),
        json!({"name": "processesRunning", "value": limits::PROCESSES_RUNNING_MAX}),
        json!({"name": "processesRetained", "value": limits::RESULTS_MAX}),
        json!({"name": "processOutputRetainedMs", "value": millis(limits::OUTPUT_RETENTION)}),
        json!({"name": "processOutputRetainedBytes", "value": limits::OUTPUT_RETENTION_MAX_BYTES}),
        json!({"name": "pathBytes", "value": limits::PATH_MAX_BYTES}),
        json!({"name": "pathComponentBytes", "value": limits::NAME_MAX_BYTES}),
        json!({"name": "listItems", "value": limits::LIST_PAGE_MAX}),
        json!({"name": "archiveEntries", "value": limits::ARCHIVE_ENTRIES_MAX}),
        json!({"name": "archiveBytes", "value": limits::ARCHIVE_TOTAL_MAX_BYTES}),
        json!({"name": "fileWatchers", "value": limits::WATCHERS_MAX}),
        json!({"name": "fileWatchDirectoriesPerWatch", "value": limits::WATCH_DIRECTORIES_MAX}),
    ];
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packages/contract/vectors/guest-protocol/limits.json");
    let contract: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(contract, own);
}
