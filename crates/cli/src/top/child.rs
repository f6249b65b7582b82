//! Another verb of weir in the place of the list: it has the terminal until it ends and a key is pressed.

use std::io::{self, Write};
use std::process::Command;

/// Runs this program with other words; what goes wrong is shown where its output would be.
pub fn run(words: &[String]) {
    let program = std::env::current_exe();
    let status = program.and_then(|program| Command::new(program).args(words).status());
    let mut out = io::stdout().lock();
    let ended = match status {
        Ok(status) if status.success() => "".into(),
        Ok(status) => format!("weir {} ended with {status}. ", words.join(" ")),
        Err(error) => format!("weir {}: {error}. ", words.join(" ")),
    };
    // A terminal that is gone is noticed at the next key.
    let _ = write!(out, "\n{ended}Press any key to go back.");
    let _ = out.flush();
}
