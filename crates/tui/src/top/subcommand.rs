//! Runs another verb of weir in place of the process list.

use std::io::{self, Write};
use std::process::Command;

/// Runs this executable with `arguments` and prints how it ended, followed by "Press any key to go back.".
pub fn run(arguments: &[String]) {
    let executable = std::env::current_exe();
    let status = executable.and_then(|path| Command::new(path).args(arguments).status());
    let mut stdout = io::stdout().lock();
    let outcome = match status {
        Ok(status) if status.success() => "".into(),
        Ok(status) => format!("weir {} ended with {status}. ", arguments.join(" ")),
        Err(error) => format!("weir {}: {error}. ", arguments.join(" ")),
    };
    // A write error means that the terminal is gone; the read of the next key reports it.
    let _ = write!(stdout, "\n{outcome}Press any key to go back.");
    let _ = stdout.flush();
}
