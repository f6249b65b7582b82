//! Tries the loaded library by hand: `preload stdout=line force=1 -- COMMAND…`, with the keys of
//! native/preload/config.h.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use weir_control::preload::LIBRARY;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let options: Vec<String> = arguments.by_ref().take_while(|word| word != "--").collect();
    let command: Vec<String> = arguments.collect();
    if command.is_empty() {
        eprintln!("usage: preload KEY=VALUE… -- COMMAND…");
        return ExitCode::from(2);
    }
    let place = std::env::temp_dir().join(format!("libweir-run-{}.so", LIBRARY.len()));
    if let Err(why) = std::fs::write(&place, LIBRARY) {
        eprintln!("{}: {why}", place.display());
        return ExitCode::from(125);
    }
    let value = format!("lib={}\n{}\n", place.display(), options.join("\n"));
    let why =
        Command::new(&command[0]).args(&command[1..]).env("LD_PRELOAD", &place).env("WEIR_RUN", value).exec();
    eprintln!("{}: {why}", command[0]);
    ExitCode::from(127)
}
