//! Runs another verb of weir in place of the process list.

use std::io::{self, Write};
use std::process::Command;

/// Runs this executable with `arguments` and prints how it ended, followed by "Press any key to go back.".
pub fn run(arguments: &[String]) {
    let executable = std::env::current_exe();
    let status = executable.and_then(|path| Command::new(path).args(arguments).status());
    let shown = shown_command(arguments);
    let mut stdout = io::stdout().lock();
    let outcome = match status {
        Ok(status) if status.success() => "".into(),
        Ok(status) => format!("{shown} ended with {status}. "),
        Err(error) => format!("{shown}: {error}. "),
    };
    // A write error means that the terminal is gone; the read of the next key reports it.
    let _ = write!(stdout, "\n{outcome}Press any key to go back.");
    let _ = stdout.flush();
}

/// Returns the command as a user would type it.
fn shown_command(arguments: &[String]) -> String {
    let typed = arguments.iter().filter(|argument| !argument.starts_with("--start-ticks="));
    typed.fold("weir".into(), |command, argument| format!("{command} {argument}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_internal_option_is_not_shown() {
        let arguments = ["peek", "--start-ticks=70", "7"].map(String::from);
        assert_eq!(shown_command(&arguments), "weir peek 7");
    }
}
