//! `sandglass-warden keep --group DIR --run DIR` · `sandglass-warden run GATE PROGRAM [ARGUMENT…]` · `become …`

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use sandglass_warden::keep::{Kept, Place, keep};
use sandglass_warden::launch::{Program, r#become, run};

const USAGE: u8 = 2;
/// Another warden of the installation lives.
const TAKEN: u8 = 3;
/// As shells have it: what was to be run could not be.
const NOT_LAUNCHED: u8 = 126;

enum Command {
    Keep(Place),
    Run(PathBuf, Program),
    Become(PathBuf, Program),
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
        Some(Command::Run(gate, program)) => match run(&gate, &program) {
            Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
            Err(cause) => not_launched(&cause),
        },
        Some(Command::Become(gate, program)) => not_launched(&r#become(&gate, &program)),
        Some(Command::Version) => {
            println!("{}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        None => {
            eprintln!(
                "usage: sandglass-warden keep --group DIR --run DIR | run GATE PROGRAM [ARGUMENT…] | become GATE PROGRAM [ARGUMENT…] | --version"
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
        "run" => gate_and_program(arguments).map(|(gate, program)| Command::Run(gate, program)),
        "become" => gate_and_program(arguments).map(|(gate, program)| Command::Become(gate, program)),
        "--version" => arguments.next().is_none().then_some(Command::Version),
        _ => None,
    }
}

fn gate_and_program(mut arguments: impl Iterator<Item = OsString>) -> Option<(PathBuf, Program)> {
    let gate = arguments.next()?.into();
    let path = arguments.next()?;
    Some((
        gate,
        Program {
            path,
            arguments: arguments.collect(),
        },
    ))
}

fn not_launched(cause: &std::io::Error) -> ExitCode {
    eprintln!("sandglass-warden: {cause}");
    ExitCode::from(NOT_LAUNCHED)
}

fn option(arguments: &mut impl Iterator<Item = OsString>, name: &str) -> Option<PathBuf> {
    (arguments.next()? == name).then_some(())?;
    arguments.next().map(PathBuf::from)
}
