//! `weir dist`: generates man pages and shell completions from the definition of the command line. A hidden verb for
//! `make install` and packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::Cli;
use crate::exit_status::FAILED;

/// Write man pages and shell completions into a directory
#[derive(clap::Args)]
pub struct Args {
    /// Directory to write to; created if missing
    dir: PathBuf,
}

/// Runs `weir dist` and returns the exit status.
pub fn run(args: &Args) -> ExitCode {
    match write_all(&args.dir) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln_lossy!("weir: {}: {error}; choose a writable directory", args.dir.display());
            ExitCode::from(FAILED)
        }
    }
}

fn write_all(dir: &Path) -> std::io::Result<()> {
    let (man, completions) = (dir.join("man"), dir.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(Cli::command(), &man)?;
    for (shell, name) in [(Shell::Bash, "weir.bash"), (Shell::Zsh, "_weir"), (Shell::Fish, "weir.fish")] {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "weir", &mut text);
        fs::write(completions.join(name), text)?;
    }
    Ok(())
}
