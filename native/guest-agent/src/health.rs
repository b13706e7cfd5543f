//! `GET /v1/health`, `PUT /v1/identity`, `GET /v1/metrics`.

use std::fs;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use serde::Serialize;

use crate::agent::{Agent, VERSION};
use crate::blocking::run_blocking;
use crate::cgroup;
use crate::channel::preamble::PROTOCOL_VERSION;
use crate::clock::whole_ms;
use crate::errors::Outcome;
use crate::http::json_request;
use crate::http::query::Query;
use crate::http::response::{AgentResponse, json};
use crate::identity::IdentityBody;
use crate::process::lineage;
use crate::process::scan;
use crate::sync::LockAnyway;

#[derive(Serialize)]
struct Health<'a> {
    version: u32,
    agent: &'static str,
    boot_id: &'a str,
    uptime_ms: u64,
    sandbox: Option<&'a str>,
    generation: Option<u64>,
    processes_running: usize,
}

#[derive(Serialize)]
struct Metrics {
    cpu_ms: u64,
    memory_bytes: u64,
    processes: usize,
    zombies: usize,
    disk_used_bytes: u64,
    disk_total_bytes: u64,
    agent_memory_bytes: u64,
}

pub fn health(agent: &Arc<Agent>, request: &Request<Incoming>) -> Outcome<AgentResponse> {
    Query::parse(request.uri().query(), &[])?;
    Ok(report(agent))
}

fn report(agent: &Arc<Agent>) -> AgentResponse {
    let identity = Arc::clone(&agent.identity.locked());
    let health = Health {
        version: PROTOCOL_VERSION,
        agent: VERSION,
        boot_id: &agent.boot_id,
        uptime_ms: whole_ms(agent.started.elapsed()),
        sandbox: identity.sandbox.as_deref(),
        generation: identity.generation,
        processes_running: agent.table.running(),
    };
    json(StatusCode::OK, &health)
}

pub async fn put_identity(agent: &Arc<Agent>, request: Request<Incoming>) -> Outcome<AgentResponse> {
    Query::parse(request.uri().query(), &[])?;
    let body: IdentityBody = json_request::read(request.into_body()).await?;
    let agent = Arc::clone(agent);
    run_blocking(move || {
        let next = body.check()?;
        let _one_at_a_time = agent.taking.locked();
        let current = Arc::clone(&agent.identity.locked());
        if current.accepts(&next)? {
            // Before it is told: who asks for the identity finds it true.
            next.apply(&agent.herald, &agent.groups)?;
            *agent.identity.locked() = Arc::new(next);
        }
        Ok(report(&agent))
    })
    .await
}

pub async fn metrics(request: Request<Incoming>) -> Outcome<AgentResponse> {
    Query::parse(request.uri().query(), &[])?;
    let metrics = run_blocking(|| Ok(measure())).await?;
    Ok(json(StatusCode::OK, &metrics))
}

fn measure() -> Metrics {
    let lines = scan::all();
    let usage = lineage::usage(&lines);
    let (disk_used_bytes, disk_total_bytes) = disk();
    let own: Vec<_> = lines
        .iter()
        .copied()
        .filter(|line| line.pid == lineage::own_pid())
        .collect();
    Metrics {
        cpu_ms: usage.cpu_ms,
        memory_bytes: cgroup_memory().unwrap_or(usage.memory_bytes),
        processes: lines.iter().filter(|line| !line.is_dead()).count(),
        zombies: lines.iter().filter(|line| line.is_dead()).count(),
        disk_used_bytes,
        disk_total_bytes,
        agent_memory_bytes: lineage::usage(&own).memory_bytes,
    }
}

fn cgroup_memory() -> Option<u64> {
    fs::read_to_string(cgroup::own()?.join("memory.current"))
        .ok()?
        .trim()
        .parse()
        .ok()
}

fn disk() -> (u64, u64) {
    // SAFETY: the structure is plain data that the call fills in.
    let stat = unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(c"/".as_ptr(), &raw mut stat) < 0 {
            return (0, 0);
        }
        stat
    };
    let total = stat.f_blocks.saturating_mul(stat.f_frsize);
    (
        total.saturating_sub(stat.f_bfree.saturating_mul(stat.f_frsize)),
        total,
    )
}
