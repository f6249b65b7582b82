//! `weir run`: parses the command line, makes the plan, runs the command, reports.

mod mode;
mod report;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args as _, FromArgMatches, ValueEnum};
use weir_control::launch::{self, EndedCommand};
use weir_control::plan::request::{BufferMode, CoalesceScope, RunRequest, StandardStream};
use weir_control::plan::{self, HostCapabilities};
use weir_model::duration;
use weir_model::trace::Exit;

use crate::exit_status::{self, CommandFailure, WEIR_FAILED};
use crate::output::{OutputOptions, PageFile};
use crate::signals;
use mode::RequestedMode;
use report::RunReport;

/// Run a program with other buffering: mode, size, delay, fewer calls, rescue at a kill
///
/// Without options, weir writes bytes within 100 ms, at the speed of full buffers, as with --max-delay 100ms. Each
/// option that changes something switches this delay off, for example --rescue: add --max-delay 100ms to it. --why,
/// --strict, --json, --html and --quiet leave it on. The command keeps its input, output, terminal, signals and exit
/// status.
#[derive(clap::Args)]
#[command(
    override_usage = "weir run [OPTIONS] [--] COMMAND...",
    after_help = EXAMPLES,
    after_long_help = EXAMPLES
)]
#[command(mut_arg("json", |arg| arg.help(JSON_HELP)))]
#[command(mut_arg("quiet", |arg| arg.help("Do not report substitutes and rescued bytes")))]
pub struct Args {
    /// Command to run, with its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required = true, value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,

    /// Buffer of standard input: none, full, full:SIZE, auto; or 0, SIZE as in stdbuf
    #[arg(long, short = 'i', value_name = "MODE", value_parser = mode::parse_input)]
    stdin: Option<RequestedMode>,

    /// Buffer of standard output: none, line, full, full:SIZE, auto; or 0, L, SIZE as in stdbuf. A socket of packets or datagrams gets
    /// one message for each write, so other messages
    #[arg(long, short = 'o', value_name = "MODE", value_parser = mode::parse)]
    stdout: Option<RequestedMode>,

    /// Buffer of standard error: the same modes as for --stdout
    #[arg(long, short = 'e', value_name = "MODE", value_parser = mode::parse)]
    stderr: Option<RequestedMode>,

    /// Same as --stdout line --force
    #[arg(long, conflicts_with_all = ["stdout", "full"])]
    line: bool,

    /// Same as --stdout full --force
    #[arg(long, conflicts_with = "stdout")]
    full: bool,

    /// Buffer of the files that the program opens, chosen by a pattern of their names; can be repeated
    #[arg(long, value_name = "GLOB=MODE", value_parser = mode::parse_file)]
    file: Vec<(String, RequestedMode)>,

    /// Keep these modes even if the program calls setvbuf itself
    #[arg(long)]
    force: bool,

    /// Write bytes that are older than TIME, e.g. 100ms; bulk output stays fast. In some cases bytes wait longer, for
    /// example while the program only waits in receives with a timeout (SO_RCVTIMEO), and where each write is one message
    /// (a socket of packets or datagrams, a pipe in packet mode). With --coalesce only the gathered bytes, not those in
    /// buffers of streams. Ends with the command. If weir itself is killed, bytes that it wrote
    /// early can be written twice: in a program that computes, and always in a BufWriter of Rust and a bufio.Writer of Go
    #[arg(long, value_name = "TIME", value_parser = parse_delay)]
    max_delay: Option<Duration>,

    /// Turn many tiny read(2) and write(2) calls into few large ones; with =files only on regular files
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "all", hide_possible_values = true)]
    coalesce: Option<CoalescedCalls>,

    /// Write the pending bytes of the program and its children when they are killed, crash, or call _exit; at an exec,
    /// those of stdio in dynamic programs. Only until the command ends, and while weir itself lives: write `weir run --rescue -- timeout ...`, not
    /// `timeout ... weir run`. Bytes that their file does not take are saved as weir-rescue-PID-FD.bin in the current
    /// directory, else in $TMPDIR or /tmp
    #[arg(long)]
    rescue: bool,

    /// Write the pending bytes at each fork, so that parent and child do not both write them
    #[arg(long)]
    fix_fork: bool,

    /// Keep the program's order of stream output and write(2) on the same descriptor
    #[arg(long)]
    fix_order: bool,

    /// Give programs that the command starts an empty standard input, so that they cannot consume the input of the command
    /// or of a loop such as `while read x; do ...; done < file`
    #[arg(long)]
    private_stdin: bool,

    /// Give the command terminals as standard output and standard error; the two stay separate
    #[arg(long)]
    pty: bool,

    /// Print what weir will do for each option, and what it cannot do; with =only do not run the command
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "first", hide_possible_values = true)]
    why: Option<WhyMode>,

    /// Exit with status 125 before the command starts if an option cannot be honoured fully
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    output: OutputOptions<PageFile>,
}

/// The values of `--coalesce`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CoalescedCalls {
    /// Calls on every descriptor.
    All,
    /// Calls on regular files.
    Files,
}

/// The values of `--why`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WhyMode {
    /// Print the plan, then run the command.
    First,
    /// Print the plan and do not run the command.
    Only,
}

const JSON_HELP: &str =
    "Write the plan and the rescued bytes as JSON (schema weir-run/1); - is standard output";

const EXAMPLES: &str = "\
Examples:
  weir run -- ./server | tee log           each line within 100 ms, full speed
  weir run -oL -- ./program | grep x       line by line, also where stdbuf fails
  weir run --coalesce -- ./byte-by-byte    few large calls, not many tiny ones
  weir run --rescue -- make test           write what a kill or crash would lose
  weir run --why=only -oL -- python3 x.py  show the plan and its limits

Exit status: the command's own, or
  128+N  signal N ended the command
  2      wrong usage
  125    an option cannot be honoured, or the file of --json or --html cannot
         be opened, and the command was not started; or weir failed later, and
         the command was run to its end: if it failed too, its own status
  126    the command cannot be executed
  127    the command was not found";

fn parse_delay(text: &str) -> Result<Duration, String> {
    match duration::parse(text)? {
        delay if delay < Duration::from_millis(1) => Err("use 1ms or more, or --stdout none".into()),
        delay => Ok(delay),
    }
}

impl Args {
    fn request(&self) -> RunRequest {
        let shorthand = match (self.line, self.full) {
            (true, _) => Some(BufferMode::Line),
            (_, true) => Some(BufferMode::Full(None)),
            _ => None,
        };
        let modes = [
            (StandardStream::Input, self.stdin.flatten()),
            (StandardStream::Output, self.stdout.flatten().or(shorthand)),
            (StandardStream::Error, self.stderr.flatten()),
        ];
        RunRequest {
            modes: modes.into_iter().filter_map(|(stream, mode)| Some((stream, mode?))).collect(),
            files: self.file.iter().filter_map(|(glob, mode)| Some((glob.clone(), (*mode)?))).collect(),
            auto: self.has_auto_mode(),
            force: self.force || shorthand.is_some(),
            max_delay: self.max_delay,
            coalesce: self.coalesce.map(|calls| match calls {
                CoalescedCalls::All => CoalesceScope::All,
                CoalescedCalls::Files => CoalesceScope::Files,
            }),
            rescue: self.rescue,
            fix_fork: self.fix_fork,
            fix_order: self.fix_order,
            private_stdin: self.private_stdin,
            pty: self.pty,
        }
    }

    /// Returns whether a mode is `auto`.
    fn has_auto_mode(&self) -> bool {
        [self.stdin, self.stdout, self.stderr].contains(&Some(None))
            || self.file.iter().any(|(_, mode)| mode.is_none())
    }
}

/// Returns the request of these options, or None if `weir run` does not accept them.
pub fn parse_request(options: &[String]) -> Option<RunRequest> {
    let options = options.iter().map(String::as_str);
    let words = ["run"].into_iter().chain(options).chain(["--", "command"]);
    let matches = Args::augment_args(clap::Command::new("run")).try_get_matches_from(words).ok()?;
    Args::from_arg_matches(&matches).ok().map(|args| args.request())
}

/// Runs `weir run` and returns the exit status.
pub fn run(args: &Args) -> ExitCode {
    match run_command(args) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            eprintln_lossy!("weir: {}", failure.text);
            ExitCode::from(failure.status)
        }
    }
}

fn run_command(args: &Args) -> Result<u8, CommandFailure> {
    let mut report = RunReport::open(args)?;
    let plan = plan::plan(&args.command, &args.request(), &HostCapabilities::read());
    plan.check_command()?;
    report.print_plan(&plan)?;
    let refusals = plan.refusals();
    let limits = if args.strict { plan.limits() } else { Vec::new() };
    if args.why == Some(WhyMode::Only) {
        report.write_document(&plan, None)?;
        return Ok(if refusals.is_empty() && limits.is_empty() { 0 } else { WEIR_FAILED });
    }
    if !refusals.is_empty() {
        let text = format!("{}; weir run --why=only shows what can be done", refusals.join("; "));
        return Err(CommandFailure::of_weir(text));
    }
    if !limits.is_empty() {
        let text = format!("{}; without --strict the command runs with these limits", limits.join("; "));
        return Err(CommandFailure::of_weir(text));
    }
    let after_exit = report.after_exit();
    let EndedCommand { outcome, lost_output } =
        launch::launch(&plan, after_exit, |problems| report.print_remarks(&plan, problems))?;
    report.print_outcome(&outcome, &lost_output);
    let written = report.write_document(&plan, Some(&outcome));
    if let Err(failure) = &written {
        eprintln_lossy!("weir: {}", failure.text);
    }
    if let Exit::Signal(signal) = outcome.exit {
        signals::note_end_of_command(signal);
    }
    Ok(exit_status::after_command(Some(outcome.exit), written.is_err() || !lost_output.is_empty(), false))
}
