//! Supervises a command: `supervise [--rescue] [--max-delay MS] [--fix-fork] -- COMMAND…`.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use weir_control::supervise::{SuperviseOptions, limitations, supervise};
use weir_model::trace::Exit;

fn main() -> ExitCode {
    let mut options = SuperviseOptions::default();
    let mut words = std::env::args_os().skip(1);
    while let Some(word) = words.next().filter(|word| word != "--") {
        match word.to_str() {
            Some("--rescue") => options.rescue = true,
            Some("--fix-fork") => options.fix_fork = true,
            Some("--max-delay") => {
                let number = words.next().and_then(|word| word.to_str().and_then(|word| word.parse().ok()));
                options.max_delay = Some(Duration::from_secs_f64(number.unwrap_or(100.0) / 1000.0));
            }
            _ => return usage(),
        }
    }
    let command: Vec<OsString> = words.collect();
    if command.is_empty() {
        return usage();
    }
    run(&command, &options).unwrap_or_else(|error| {
        eprintln!("supervise: {error}");
        ExitCode::from(125)
    })
}

/// Runs the command. The variable SUPERVISE_OUTCOME prints its outcome too.
fn run(command: &[OsString], options: &SuperviseOptions) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let gated = weir_sys::launch::start(command)?;
    for sentence in limitations(&gated) {
        eprintln!("supervise: {sentence}");
    }
    let outcome = supervise(gated, options, Vec::new(), None)?;
    if std::env::var_os("SUPERVISE_OUTCOME").is_some() {
        eprintln!("{outcome:?}");
    }
    Ok(ExitCode::from(match outcome.exit {
        Exit::Code(code) => code as u8,
        Exit::Signal(signal) => 128 + signal as u8,
    }))
}

fn usage() -> ExitCode {
    eprintln!("supervise [--rescue] [--max-delay MS] [--fix-fork] -- COMMAND…");
    ExitCode::from(2)
}
