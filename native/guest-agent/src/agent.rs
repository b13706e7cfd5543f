//! What all requests share.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::Semaphore;

use crate::identity::Identity;
use crate::limits::{LONG_WORK_MAX, SPAWNS_IN_FLIGHT_MAX, WATCHERS_MAX};
use crate::naming::Herald;
use crate::process::group::Groups;
use crate::process::reaper::Births;
use crate::process::start_request::Fingerprints;
use crate::process::table::Table;
use crate::random;

pub struct Agent {
    /// Random per start of the agent, so the host can tell a restarted guest from a reconnected one.
    pub boot_id: String,
    pub started: Instant,
    pub identity: Mutex<Arc<Identity>>,
    /// Held while an identity is taken, so that there is one at a time.
    pub taking: Mutex<()>,
    pub herald: Herald,
    pub table: Arc<Table>,
    pub groups: Arc<Groups>,
    pub births: Arc<Births>,
    pub fingerprints: Fingerprints,
    /// Turns for spawning.
    pub spawns: Semaphore,
    /// Turns for walks that may take minutes.
    pub long_work: Arc<Semaphore>,
    /// Places for file watches.
    pub watchers: Arc<Semaphore>,
}

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Agent {
    pub fn new(herald: Herald) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            boot_id: random::hex_id()?,
            started: Instant::now(),
            identity: Mutex::new(Arc::new(Identity::default())),
            taking: Mutex::default(),
            herald,
            table: Arc::new(Table::default()),
            groups: Arc::new(Groups::probe(std::process::id() == 1)),
            births: Arc::default(),
            fingerprints: Fingerprints::default(),
            spawns: Semaphore::new(SPAWNS_IN_FLIGHT_MAX),
            long_work: Arc::new(Semaphore::new(LONG_WORK_MAX)),
            watchers: Arc::new(Semaphore::new(WATCHERS_MAX)),
        }))
    }
}
