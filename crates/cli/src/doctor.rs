//! `weir doctor`: parses the command line, tries what this machine allows, prints it.

use std::process::ExitCode;

use weir_model::doctor::DoctorDocument;
use weir_report::doctor::screen;

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
  2  wrong usage, or the file of --json cannot be created";

/// Runs `weir doctor` and returns the exit status.
pub fn run(args: &Args) -> ExitCode {
    let mut output = match args.output.open_or_report() {
        Ok(output) => output,
        Err(status) => return status,
    };
    let doctor = weir_observe::doctor::examine();
    output.finish(|| screen(&doctor, &weir_tui::style::stdout_style()), &DoctorDocument::new(&doctor), false)
}
