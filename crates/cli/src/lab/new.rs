//! `weir lab new`: the command line, and what is done with it.

use std::path::PathBuf;
use std::process::ExitCode;

use super::print;
use crate::FAILED;

/// Make a folder for an experiment of your own, which runs at once
///
/// It holds lab.toml (what is expected, what happens, why), broken.c, fixed.c and check.sh, which looks at what both
/// do, with comments on what to change.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub struct Args {
    /// The folder that is made
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  weir lab new mine           makes mine/lab.toml, broken.c, fixed.c and check.sh
  weir lab ./mine             runs it
  weir lab ./mine --json -    the result for other programs

Exit status: 0 made; 1 it is there already, or cannot be made; 2 wrong usage.";

/// Runs the verb.
pub fn run(args: &Args) -> ExitCode {
    match weir_lab::template::make(&args.directory) {
        Ok(files) => {
            let folder = args.directory.display();
            let run = if args.directory.components().count() == 1 && !args.directory.is_absolute() {
                "./"
            } else {
                ""
            };
            print(&format!("made {folder}: {}\nrun it:  weir lab {run}{folder}\n", files.join(", ")));
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain!("weir: {error}");
            ExitCode::from(FAILED)
        }
    }
}
