//! What happens by the clock: old output is forgotten, empty control groups are removed.

use std::sync::Arc;

use crate::agent::Agent;
use crate::limits::HOUSEKEEPING_INTERVAL;
use crate::process::retention;

/// Runs for ever.
pub async fn run(agent: Arc<Agent>) {
    loop {
        tokio::time::sleep(HOUSEKEEPING_INTERVAL).await;
        retention::sweep(&agent.table);
        if agent.groups.wants_sweep() {
            let groups = Arc::clone(&agent.groups);
            // A panic there costs one sweep.
            let _ = tokio::task::spawn_blocking(move || groups.sweep()).await;
        }
    }
}
