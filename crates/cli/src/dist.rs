//! `weir dist`: generates man pages and shell completions from the definition of the command line. A hidden verb for
//! `make install` and packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::Cli;
use crate::exit_status::FAILED;
use crate::manual;

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

/// Writes the man pages of `command` and of its verbs that are not hidden.
fn write_pages(command: &Command, dir: &Path) -> std::io::Result<()> {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        write_pages(verb, dir)?;
    }
    let name = command.get_display_name().unwrap_or(command.get_name());
    let mut text = Vec::new();
    manual::page(command, &mut text)?;
    fs::write(dir.join(format!("{name}.1")), text)
}

/// Returns a command without its hidden verbs, which clap_complete would offer. Hidden options stay: others refer to them.
fn visible(command: &Command) -> Command {
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(visible);
    let made = Command::new(command.get_name().to_owned())
        .args(command.get_arguments().cloned())
        .groups(command.get_groups().cloned())
        .subcommands(verbs);
    let made = match command.get_about() {
        Some(about) => made.about(about.clone()),
        None => made,
    };
    // The version adds the option --version.
    match command.get_version() {
        Some(version) => made.version(version.to_owned()),
        None => made,
    }
}

fn write_all(dir: &Path) -> std::io::Result<()> {
    let (man, completions) = (dir.join("man"), dir.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    write_pages(&command, &man)?;
    for (shell, name) in [(Shell::Bash, "weir.bash"), (Shell::Zsh, "_weir"), (Shell::Fish, "weir.fish")] {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut visible(&Cli::command()), "weir", &mut text);
        fs::write(completions.join(name), text)?;
    }
    Ok(())
}
