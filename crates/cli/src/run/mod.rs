//! `weir run`: the command line, and what is done with it.

mod mode;
mod show;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use weir_control::plan::request::{BufferMode, CoalesceScope, RunRequest, StandardStream};
use weir_control::plan::{self, Plan};
use weir_control::{launch, plan::host_capabilities};
use weir_model::duration;

use crate::output::OutputOptions;
use crate::trace::status::{self, Failure};
use mode::Asked;
use show::Outputs;

/// Run a program with other buffering: modes, a bounded delay, gathered calls, nothing lost at a kill
///
/// Without an option, no byte waits longer than 100 ms in the program, at the speed of full buffers. The command's
/// input, output, terminal, signals and exit status are its own.
#[derive(clap::Args)]
#[command(
    override_usage = "weir run [OPTIONS] [--] COMMAND...",
    after_help = EXAMPLES,
    after_long_help = EXAMPLES
)]
#[command(mut_arg("json", |arg| arg.help(JSON)))]
#[command(mut_arg("quiet", |arg| arg.help("Say nothing of what stands in for a wish, or was rescued")))]
pub struct Args {
    /// Command to run, with its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required = true, value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,

    /// Buffer of standard input: none, full, full:SIZE, auto; or 0, SIZE as with stdbuf
    #[arg(long, short = 'i', value_name = "MODE", value_parser = mode::parse_input)]
    stdin: Option<Asked>,

    /// Buffer of standard output: none, line, full, full:SIZE, auto; or 0, L, SIZE as with stdbuf
    #[arg(long, short = 'o', value_name = "MODE", value_parser = mode::parse)]
    stdout: Option<Asked>,

    /// Buffer of standard error
    #[arg(long, short = 'e', value_name = "MODE", value_parser = mode::parse)]
    stderr: Option<Asked>,

    /// The same as --stdout line --force
    #[arg(long, conflicts_with_all = ["stdout", "full"])]
    line: bool,

    /// The same as --stdout full --force
    #[arg(long, conflicts_with = "stdout")]
    full: bool,

    /// Buffer of files that the program opens, by a pattern of their names; can be given again
    #[arg(long, value_name = "GLOB=MODE", value_parser = mode::parse_file)]
    file: Vec<(String, Asked)>,

    /// The modes hold also against a program that calls setvbuf itself
    #[arg(long)]
    force: bool,

    /// No byte waits longer than this in the program, e.g. 100ms; bulk output keeps its speed
    #[arg(long, value_name = "TIME", value_parser = parse_delay)]
    max_delay: Option<Duration>,

    /// Gather tiny read(2) and write(2) calls; with =files only those on regular files
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "all", hide_possible_values = true)]
    coalesce: Option<What>,

    /// What the program, or a child of it, still holds when it is killed, crashes or calls _exit or exec is written
    /// to where it was meant for
    #[arg(long)]
    rescue: bool,

    /// What waits when the program forks is written then, and not by both processes
    #[arg(long)]
    fix_fork: bool,

    /// Streams and write(2) on the same descriptor keep the order of the program
    #[arg(long)]
    fix_order: bool,

    /// Programs that the command starts find the end of the file on standard input, and cannot take it away
    #[arg(long)]
    private_stdin: bool,

    /// Give it terminals as standard output and standard error, which stay apart
    #[arg(long)]
    pty: bool,

    /// Say on standard error what will be done about each wish, and what cannot; with =only do not run it
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "first", hide_possible_values = true)]
    why: Option<When>,

    #[command(flatten)]
    output: OutputOptions,
}

/// Which calls are gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// On everything.
    All,
    /// On regular files.
    Files,
}

/// When it is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// Before the command runs.
    First,
    /// The command is not run.
    Only,
}

const JSON: &str = "Write what was done, and rescued, as JSON (schema weir-run/1); - is standard output";

const EXAMPLES: &str = "\
Examples:
  weir run -- ./server | tee log            no line waits longer than 100 ms, and bulk stays fast
  weir run -oL -- ./program | grep x        by lines, as stdbuf -oL, and also where that does nothing
  weir run --coalesce -- ./byte-by-byte     tiny calls become few large ones
  weir run --rescue -- make test            what a kill or a crash would throw away is written
  weir run --why=only -oL -- python3 x.py   what would be done, and what would not, and why

Exit status: the command's own, 128+N when signal N ended it; 2 wrong usage; 125 weir itself failed, or a wish
cannot be fulfilled at all; 126 the command cannot be executed; 127 it was not found.";

fn parse_delay(text: &str) -> Result<Duration, String> {
    match duration::parse(text)? {
        short if short < Duration::from_millis(1) => Err("use 1ms or more, or --stdout none".into()),
        time => Ok(time),
    }
}

impl Args {
    fn request(&self) -> RunRequest {
        let short = match (self.line, self.full) {
            (true, _) => Some(BufferMode::Line),
            (_, true) => Some(BufferMode::Full(None)),
            _ => None,
        };
        let modes = [
            (StandardStream::Input, self.stdin.flatten()),
            (StandardStream::Output, self.stdout.flatten().or(short)),
            (StandardStream::Error, self.stderr.flatten()),
        ];
        RunRequest {
            modes: modes.into_iter().filter_map(|(stream, mode)| Some((stream, mode?))).collect(),
            files: self.file.iter().filter_map(|(glob, mode)| Some((glob.clone(), (*mode)?))).collect(),
            force: self.force || short.is_some(),
            max_delay: self.max_delay,
            coalesce: self.coalesce.map(|what| match what {
                What::All => CoalesceScope::All,
                What::Files => CoalesceScope::Files,
            }),
            rescue: self.rescue,
            fix_fork: self.fix_fork,
            fix_order: self.fix_order,
            private_stdin: self.private_stdin,
            pty: self.pty,
        }
    }

    /// An option says that streams stay as they are: nothing else is meant to be done.
    fn says_auto(&self) -> bool {
        [self.stdin, self.stdout, self.stderr].contains(&Some(None))
            || self.file.iter().any(|(_, mode)| mode.is_none())
    }
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    match attempt(&args) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            complain!("weir: {}", failure.text);
            ExitCode::from(failure.status)
        }
    }
}

fn attempt(args: &Args) -> Result<u8, Failure> {
    let mut outputs = Outputs::open(args)?;
    let around = host_capabilities::look();
    let mut plan = plan::plan(&args.command, &args.request(), &around);
    if args.says_auto() && args.request().is_empty() {
        plan.nothing();
    }
    if plan.program.path.is_none() {
        // As every shell says it, before anything that is beside the point.
        let name = Path::new(&args.command[0]).display().to_string();
        let source = std::io::Error::from_raw_os_error(2);
        return Err(weir_sys::Error::Command { command: name, source }.into());
    }
    outputs.plan(args, &plan)?;
    if args.why == Some(When::Only) {
        outputs.document(&plan, None)?;
        return Ok(if plan.refusals().is_empty() { 0 } else { status::OWN });
    }
    refuse(&plan)?;
    let outcome = launch::carry_out(&plan, outputs.behind(), |unable| show::remarks(args, &plan, unable))?;
    show::outcome(args, &outcome);
    outputs.document(&plan, Some(&outcome))?;
    Ok(status::status(Some(outcome.exit), false, false))
}

/// A wish that nothing can fulfil, and that nothing stands in for.
fn refuse(plan: &Plan) -> Result<(), Failure> {
    match plan.refusals() {
        none if none.is_empty() => Ok(()),
        some => Err(Failure::own(format!("{}; weir run --why=only shows what can be done", some.join("; ")))),
    }
}
