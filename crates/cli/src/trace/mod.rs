//! `weir trace`: the command line, and what is done with it.

mod show;
pub(crate) mod status;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use weir_bench::{Error, prices};
use weir_diagnose::judge_with_streams;
use weir_model::trace::{Recording, StreamTable};
use weir_model::{Severity, duration};
use weir_sys::inherited::InheritedFds;
use weir_trace_api::{BackendChoice, DeferredCleanup, TraceOptions, TraceTarget};

use crate::output::OutputOptions;
use crate::{USAGE, signals};
use show::Outputs;
use status::{FailOn, Failure};

/// See what a program does with its bytes, what is wrong, and what would fix it
///
/// Runs a command, or attaches to a process, and follows its children and threads. At the end comes the verdict,
/// a table of streams (calls, bytes, sizes, how each is buffered), what is wrong with a fix and its gain, and
/// what could not be seen. The command's input, output, terminal, signals and exit status are its own; weir
/// writes to standard error or a file.
#[derive(clap::Args)]
#[command(
    override_usage = "weir trace [OPTIONS] [--] COMMAND...\n       weir trace [OPTIONS] --pid PID [--time TIME]",
    after_help = EXAMPLES,
    after_long_help = EXAMPLES
)]
#[command(mut_arg("json", |arg| arg.help("Write the result as JSON (schema weir-trace/1); - is standard output")))]
#[command(mut_arg("quiet", |arg| arg.help("No screen: only the files and errors")))]
pub struct Args {
    /// Command to run, with its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required_unless_present_any = ["pid", "replay"], conflicts_with_all = ["pid", "replay"], value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,

    /// Attach to a process, all its threads and what it starts from now on, until Ctrl-C
    #[arg(long, short, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "replay")]
    pid: Option<u32>,

    /// Stop watching after this time, e.g. 10s; the program goes on
    #[arg(long, short, value_name = "TIME", value_parser = parse_time, conflicts_with = "replay")]
    time: Option<Duration>,

    /// Where to see the calls: ebpf (needs root, or CAP_BPF and CAP_PERFMON, and Linux 6.16 or later), ptrace (needs
    /// nothing), sample (only looks into /proc), auto (the best that works here)
    #[arg(
        long,
        value_name = "ENGINE",
        default_value = "auto",
        value_parser = backend_choice(),
        hide_possible_values = true,
        conflicts_with = "replay"
    )]
    engine: BackendChoice,

    /// Look at every call, whatever it costs: no bursts
    #[arg(long, conflicts_with = "replay")]
    exact: bool,

    /// With --exact, stop the command only at the calls that weir follows, by a seccomp filter: programs that make
    /// many others are slowed far less (engine ptrace)
    ///
    /// The filter stays with the command and all that it starts, and without weir their calls would fail. So if weir is
    /// killed by SIGKILL, they are killed as well; weir stays until the last of them has ended, also in the background;
    /// and under it nobody else can trace them (strace, gdb).
    #[arg(long, requires_all = ["exact", "command"], conflicts_with_all = ["pid", "time", "every_call", "replay"])]
    seccomp: bool,

    /// Record each call, with a look into the buffers before it: what `weir lab --step` goes through
    #[arg(long, requires = "record", conflicts_with = "replay", hide = true)]
    every_call: bool,

    /// Show all streams and sizes, not only those that matter most
    #[arg(long)]
    all: bool,

    /// Exit with 1 when there is a finding of this severity or a worse one: high, warn
    #[arg(long, value_name = "SEVERITY", hide_possible_values = true)]
    fail_on: Option<FailOn>,

    #[command(flatten)]
    result: OutputOptions,

    /// Write what happened when, for ui.perfetto.dev or chrome://tracing
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,

    /// Write the screen to a file, not to standard error
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write all that was seen, for a report about weir itself
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Judge and show what --record wrote; no program is run
    #[arg(long, value_name = "FILE", hide = true)]
    replay: Option<PathBuf>,
}

/// Parses `--engine`.
fn backend_choice() -> impl TypedValueParser<Value = BackendChoice> {
    const HELP: [&str; 4] =
        ["The best that works here", "In the kernel", "By stopping the program", "From /proc"];
    let values = BackendChoice::NAMES.into_iter().zip(HELP);
    PossibleValuesParser::new(values.map(|(name, help)| PossibleValue::new(name).help(help)))
        .try_map(|name| name.parse::<BackendChoice>())
}

const EXAMPLES: &str = "\
Examples:
  weir trace -- ./program < input > output      its streams, what is wrong, what would fix it
  weir trace -p 4711 -t 10s                     ten seconds of a process that runs
  weir trace --json trace.json -- make          the result for other programs, the screen as well
  weir trace --fail-on high -q -- ./test        for CI: status 1 when bytes are lost or time is wasted
  weir trace --exact --seccomp -- ./program     stopped at the calls that matter, at no others
  weir trace --timeline t.json -- ./program     open t.json in ui.perfetto.dev
  weir trace -o report.txt -- sh -c 'a | b'     nothing on the terminal but the program's own

Signals from the terminal (Ctrl-C, Ctrl-\\) reach the command, and those sent to weir (SIGTERM, SIGHUP, SIGUSR1 ...) are
passed on to it; the report comes when it has ended.

Exit status: the command's own, 128+N when signal N ended it; 0 with --pid. 1 with --fail-on and such a
finding, if the command itself ended with 0; 2 wrong usage; 125 weir itself failed, but after a command that
did not end with 0 its status, with the error on standard error; 126 the command cannot be executed;
127 it was not found. A report that cannot be written is such a failure: the command is run to its end.";

fn parse_time(text: &str) -> Result<Duration, String> {
    match duration::parse(text)? {
        Duration::ZERO => Err("0: give it at least some time, such as 10s".into()),
        time => Ok(time),
    }
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    if let Err(text) = one_stdout(&args).and_then(|()| engine_that_sees(&args)) {
        complain!("weir: {text}\nweir: try 'weir trace --help'");
        return ExitCode::from(USAGE);
    }
    let traced = Outputs::open(&args).and_then(|outputs| Ok((outputs, obtain(&args)?)));
    match traced {
        Ok((outputs, (recording, rest))) => {
            let status = conclude(&args, outputs, &recording);
            drop(rest);
            // Whoever waits for the end of weir would wait for each of its events to be freed.
            std::mem::forget(recording);
            ExitCode::from(status)
        }
        Err(failure) => {
            complain!("weir: {}", failure.text);
            ExitCode::from(failure.status)
        }
    }
}

/// Two texts on standard output could not be told apart.
fn one_stdout(args: &Args) -> Result<(), String> {
    match to_stdout(args) {
        0 | 1 => Ok(()),
        _ => Err("standard output (-) can take one of --json, --timeline, --output and --record".into()),
    }
}

/// How many results go to standard output.
fn to_stdout(args: &Args) -> usize {
    let files = [&args.timeline, &args.output, &args.record].into_iter().flatten();
    files.filter(|path| path.as_path() == Path::new("-")).count() + usize::from(args.result.json_to_stdout())
}

/// Only one engine stops programs at calls, and one sees none.
fn engine_that_sees(args: &Args) -> Result<(), String> {
    match args.engine {
        BackendChoice::Ebpf | BackendChoice::Proc if args.seccomp => {
            Err("--seccomp is of the engine ptrace: leave out --engine, or give it ptrace".into())
        }
        BackendChoice::Proc if args.exact => Err(
            "--exact looks at every call, and the engine sample at none: leave out --engine, or give it ptrace".into(),
        ),
        _ => Ok(()),
    }
}

/// The recording: of a run, or of a file.
fn obtain(args: &Args) -> Result<(Recording, DeferredCleanup), Failure> {
    if let Some(path) = &args.replay {
        return Ok((replay(path)?, DeferredCleanup::default()));
    }
    let directory = Path::new(".");
    let known = prices::cached(directory);
    // A command gets the signals of the terminal itself, and weir outlives them.
    let stop = signals::stop_flag_of_tracer(args.pid.is_none());
    let target = match args.pid {
        Some(pid) => TraceTarget::Process(pid),
        None => TraceTarget::Command(args.command.clone()),
    };
    let options = TraceOptions {
        target,
        backend: if args.seccomp { BackendChoice::Ptrace } else { args.engine },
        exact: args.exact,
        every_call: args.every_call,
        seccomp: args.seccomp,
        inherited: if to_stdout(args) > 0 { InheritedFds::Stdout } else { InheritedFds::Nothing },
        limit: args.time,
        stop: stop.map_err(Failure::own)?,
        prices: known.unwrap_or_default(),
    };
    let (mut recording, rest) = weir_probe::trace::record(&options)?;
    // Measured behind the run, if they are not known: the program does not wait for them.
    recording.prices = known.unwrap_or_else(|| prices::prices(directory));
    if recording.waits_for_devices() {
        recording.prices.sync_ns = prices::sync_ns(directory).unwrap_or(recording.prices.sync_ns);
    }
    Ok((recording, rest))
}

fn replay(path: &Path) -> Result<Recording, Failure> {
    let advice = "give a file that 'weir trace --record' wrote";
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::own(Error::system("read", path, &error, advice).to_string()))?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::own(format!("{}: no recording ({error}); {advice}", path.display())))
}

/// Judges, writes, and says how weir ends.
fn conclude(args: &Args, outputs: Outputs, recording: &Recording) -> u8 {
    let streams = StreamTable::of(recording);
    let (judged, streams) = judge_with_streams(&streams);
    let errors = outputs.write(args, recording, &judged, streams);
    for error in &errors {
        complain!("weir: {error}");
    }
    let worst = judged.findings.iter().map(|finding| finding.severity).max();
    let failed = args.fail_on.is_some_and(|fail_on| worst >= Some(Severity::from(fail_on)));
    let ended = if args.replay.is_some() { None } else { recording.exit };
    status::status(ended, !errors.is_empty(), failed)
}
