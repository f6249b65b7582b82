//! Runs a command with the preload library: `preload stdout=line force=1 -- COMMAND…`. native/preload/config.h defines
//! the keys.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use weir_control::preload::{LIBRARY, VARIABLE};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let lines: Vec<String> = arguments.by_ref().take_while(|word| word != "--").collect();
    let command: Vec<String> = arguments.collect();
    if command.is_empty() {
        eprintln!("usage: preload KEY=VALUE… -- COMMAND…");
        return ExitCode::from(2);
    }
    let library = std::env::temp_dir().join(format!("libweir-run-{}.so", LIBRARY.len()));
    if let Err(error) = std::fs::write(&library, LIBRARY) {
        eprintln!("{}: {error}", library.display());
        return ExitCode::from(125);
    }
    let value = format!("lib={}\n{}\n", library.display(), lines.join("\n"));
    let mut command_with_library = Command::new(&command[0]);
    command_with_library.args(&command[1..]).env("LD_PRELOAD", &library).env(VARIABLE, value);
    let error = command_with_library.exec();
    eprintln!("{}: {error}", command[0]);
    ExitCode::from(127)
}
