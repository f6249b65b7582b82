//! `weir lab new`: parses the command line and creates the folder of an experiment.

use std::path::PathBuf;
use std::process::ExitCode;

use super::print_or_report;
use crate::exit_status::FAILED;

/// Create an experiment of your own, which runs at once
///
/// The new folder contains lab.toml (what is expected, what happens, why), broken.c, fixed.c, and check.sh, which
/// observes what both programs do. Comments say what to change.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub struct Args {
    /// Folder to create
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  weir lab new mine         create lab.toml, broken.c, fixed.c, check.sh in mine
  weir lab ./mine           run it
  weir lab ./mine --json -  the result for other programs

Exit status:
  0  success
  1  the folder exists already, or cannot be created
  2  wrong usage";

/// Runs `weir lab new` and returns the exit status.
pub fn run(args: &Args) -> ExitCode {
    match weir_lab::template::make(&args.directory) {
        Ok(files) => {
            let printed = print_or_report(&next_steps(args, &files));
            if printed { ExitCode::SUCCESS } else { ExitCode::from(FAILED) }
        }
        Err(error) => {
            eprintln_lossy!("weir: {error}");
            ExitCode::from(FAILED)
        }
    }
}

fn next_steps(args: &Args, files: &[&str]) -> String {
    let folder = args.directory.display();
    // Without "./" a plain name would be the name of a built-in experiment.
    let is_plain_name = args.directory.components().count() == 1 && !args.directory.is_absolute();
    let prefix = if is_plain_name { "./" } else { "" };
    format!("created {folder}: {}\nrun it:  weir lab {prefix}{folder}\n", files.join(", "))
}
