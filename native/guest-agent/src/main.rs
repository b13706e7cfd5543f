//! `sandglass-guest --channel SOCKET`

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use sandglass_guest::agent::{Agent, VERSION};
use sandglass_guest::boot;
use sandglass_guest::channel::session;
use sandglass_guest::housekeeping;
use sandglass_guest::naming::{self, Herald};
use sandglass_guest::process::reaper;

const RESTART_DELAY: Duration = Duration::from_millis(50);

enum Command {
    Serve(PathBuf),
    Version,
}

fn main() -> ExitCode {
    match command() {
        Some(Command::Serve(channel)) => serve(channel).map_or_else(
            |cause| {
                eprintln!("sandglass-guest: {cause}");
                ExitCode::FAILURE
            },
            |()| ExitCode::SUCCESS,
        ),
        Some(Command::Version) => {
            println!("{VERSION}");
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("usage: sandglass-guest --channel SOCKET | --version");
            ExitCode::from(2)
        }
    }
}

fn command() -> Option<Command> {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next()?;
    let command = match first.to_str() {
        Some("--channel") => Command::Serve(PathBuf::from(arguments.next()?)),
        Some("--version") => Command::Version,
        _ => return None,
    };
    arguments.next().is_none().then_some(command)
}

fn serve(channel: PathBuf) -> std::io::Result<()> {
    boot::prepare()?;
    let herald = Herald::appoint()?;
    naming::renew_machine_id()?;
    let runtime = boot::runtime()?;
    runtime.block_on(async {
        let agent = Agent::new(herald)?;
        {
            let agent = Arc::clone(&agent);
            keep_running(move || session::dial_for_ever(Arc::clone(&agent), channel.clone()));
        }
        {
            let agent = Arc::clone(&agent);
            keep_running(move || housekeeping::run(Arc::clone(&agent)));
        }
        let reaped = reaper::start(
            Arc::clone(&agent.table),
            Arc::clone(&agent.groups),
            Arc::clone(&agent.births),
        )?;
        reaper::run(reaped).await;
        Ok(())
    })
}

/// Starts a loop that never ends, again after a panic in it.
fn keep_running<F: Future<Output = ()> + Send + 'static>(make: impl Fn() -> F + Send + 'static) {
    tokio::spawn(async move {
        while tokio::spawn(make()).await.is_err() {
            tokio::time::sleep(RESTART_DELAY).await;
        }
    });
}
