//! `sandglass-warden keep --group DIR --run DIR` · `sandglass-warden launch PROCS PROGRAM [ARGUMENT…]`

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use sandglass_warden::keep::{Kept, Place, keep};
use sandglass_warden::launch::launch;

const USAGE: u8 = 2;
/// Another warden of the installation lives.
const TAKEN: u8 = 3;
/// As shells have it: what was to be run could not be.
const NOT_LAUNCHED: u8 = 126;

enum Command {
    Keep(Place),
    Launch {
        procs: PathBuf,
        program: OsString,
        arguments: Vec<OsString>,
    },
    Version,
}

fn main() -> ExitCode {
    match command() {
        Some(Command::Keep(place)) => match keep(&place) {
            Ok(Kept::Ended) => ExitCode::SUCCESS,
            Ok(Kept::Taken) => ExitCode::from(TAKEN),
            Err(cause) => {
                eprintln!("sandglass-warden: {cause}");
                ExitCode::FAILURE
            }
        },
        Some(Command::Launch {
            procs,
            program,
            arguments,
        }) => {
            eprintln!("sandglass-warden: {}", launch(&procs, &program, &arguments));
            ExitCode::from(NOT_LAUNCHED)
        }
        Some(Command::Version) => {
            println!("{}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        None => {
            eprintln!(
                "usage: sandglass-warden keep --group DIR --run DIR | launch PROCS PROGRAM [ARGUMENT…] | --version"
            );
            ExitCode::from(USAGE)
        }
    }
}

fn command() -> Option<Command> {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next()?.to_str()? {
        "keep" => {
            let group = option(&mut arguments, "--group")?;
            let run = option(&mut arguments, "--run")?;
            arguments
                .next()
                .is_none()
                .then_some(Command::Keep(Place { group, run }))
        }
        "launch" => Some(Command::Launch {
            procs: arguments.next()?.into(),
            program: arguments.next()?,
            arguments: arguments.collect(),
        }),
        "--version" => arguments.next().is_none().then_some(Command::Version),
        _ => None,
    }
}

fn option(arguments: &mut impl Iterator<Item = OsString>, name: &str) -> Option<PathBuf> {
    (arguments.next()? == name).then_some(())?;
    arguments.next().map(PathBuf::from)
}
