//! `weir doctor`: parses the command line, tries what this machine allows, prints it.

use std::process::ExitCode;

use weir_model::doctor::DoctorDocument;
use weir_report::doctor::screen;

use crate::console;
use crate::exit_status::{FAILED, USAGE};
use crate::output::OutputOptions;

/// Show what this kernel, these rights and this container allow
///
/// weir tries each ability by its own system call and prints a line for it, with what to do if it is missing: eBPF and
/// the kernel hooks that it gets, BTF, ptrace, breakpoints, io_uring and more. Nothing is changed.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(mut_arg("json", |arg| arg.help("Write the result as JSON (schema weir-doctor/1); - is standard output")))]
pub struct Args {
    #[command(flatten)]
    output: OutputOptions,
}

const EXAMPLES: &str = "\
Examples:
  weir doctor               what works here
  weir doctor --json -      for a bug report about weir
  sudo weir doctor          what works for root

Exit status:
  0  the result is complete, whatever works
  1  the result could not be written
  2  wrong usage";

/// Runs `weir doctor` and returns the exit status.
pub fn run(args: &Args) -> ExitCode {
    let mut output = match args.output.open() {
        Ok(output) => output,
        Err(error) => {
            eprintln_lossy!("weir: {error}");
            return ExitCode::from(USAGE);
        }
    };
    let doctor = weir_observe::doctor::examine();
    let printed = match output.shows_screen() {
        true => console::print_screen(&screen(&doctor)),
        false => Ok(()),
    };
    let mut failed = false;
    for error in
        [printed, output.write_json(&DoctorDocument::new(&doctor))].into_iter().filter_map(Result::err)
    {
        eprintln_lossy!("weir: {error}");
        failed = true;
    }
    if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
}
