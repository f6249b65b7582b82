//! `weir trace`: parses the command line, records the run, judges the recording, reports.

mod report;
mod run_planner;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use weir_bench::{Error, prices};
use weir_diagnose::diagnose_with_streams;
use weir_model::Severity;
use weir_model::trace::{Exit, Prices, Recording, StreamTable};
use weir_sys::inherited::InheritedFds;
use weir_sys::unkillable;
use weir_trace_api::{BackendChoice, DeferredCleanup, TraceOptions, TraceTarget};

use crate::exit_status::{self, CommandFailure, USAGE};
use crate::output::{OutputOptions, PageFile};
use crate::output_file::is_stdout;
use crate::signals;
use crate::values::{parse_nonzero_duration, parse_pid};
use report::TraceReport;
use run_planner::HostPlanner;
use weir_sys::process_identity::ProcessIdentity;

/// Report what a program does with its bytes, what is wrong, and how to fix it
///
/// weir runs a command, or attaches to a process, and traces all threads and children. At the end it prints the
/// verdict, a table of streams (calls, bytes, sizes, buffering mode), the findings with a fix and its gain, and what
/// weir could not observe.
///
/// The command keeps its input, output, terminal, signals and exit status. weir writes to standard error or to files.
#[derive(clap::Args)]
#[command(
    override_usage = "weir trace [OPTIONS] [--] COMMAND...\n       weir trace [OPTIONS] --pid PID [--time TIME]",
    after_help = EXAMPLES,
    after_long_help = EXAMPLES
)]
#[command(mut_arg("json", |arg| arg.help("Write the result as JSON (schema weir-trace/1); - is standard output")))]
pub struct Args {
    /// Command to run, with its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required_unless_present_any = ["pid", "replay"], conflicts_with_all = ["pid", "replay"], value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,

    /// Attach to a process, its threads and the processes that it starts from now on, until Ctrl-C
    #[arg(long, short, value_name = "PID", value_parser = parse_pid, conflicts_with = "replay")]
    pid: Option<u32>,

    /// The start of the process in clock ticks since boot, from `weir top`: another process with its number is left alone
    #[arg(long, value_name = "TICKS", requires = "pid", hide = true)]
    start_ticks: Option<u64>,

    /// Stop tracing after this time, e.g. 10s, report and end; the program continues without weir
    #[arg(long, short, value_name = "TIME", value_parser = parse_nonzero_duration, conflicts_with = "replay")]
    time: Option<Duration>,

    /// How to trace: ebpf (needs root, or CAP_BPF and CAP_PERFMON, and a kernel with BTF, Linux 5.10 or later), ptrace
    /// (needs no privilege), sample (only reads /proc), auto (the best that works here)
    #[arg(
        long,
        value_name = "ENGINE",
        default_value = "auto",
        value_parser = engine_parser(),
        hide_possible_values = true,
        conflicts_with = "replay"
    )]
    engine: BackendChoice,

    /// Print first which kernel hooks the engine ebpf gets here, and why not others
    #[arg(long, conflicts_with = "replay")]
    why: bool,

    /// File with the kernel's BTF, or a kernel image with it (engine ebpf), if /sys/kernel/btf is hidden
    ///
    /// It must be that of the running kernel. Without it weir searches /sys/kernel/btf/vmlinux, then the kernel's images in
    /// /boot, /lib/modules and /usr/lib/debug.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["replay", "seccomp"])]
    btf: Option<PathBuf>,

    /// Record every call, whatever it costs: no sampling
    #[arg(long, conflicts_with = "replay")]
    exact: bool,

    /// With --exact, stop the command only at the calls that weir records, by a seccomp filter (engine ptrace); a
    /// command with many other calls then runs much faster
    ///
    /// The filter stays in the command and in all its descendants. Without weir their calls would fail, so if weir is
    /// killed by SIGKILL, they are killed as well. weir runs until the last of them has ended, also in the background.
    /// Other tracers (strace, gdb) cannot trace them.
    #[arg(long, requires_all = ["exact", "command"], conflicts_with_all = ["pid", "time", "every_call", "replay"])]
    seccomp: bool,

    /// Record each call with a buffer snapshot before it; `weir lab --step` needs this
    #[arg(long, requires = "record", conflicts_with = "replay", hide = true)]
    every_call: bool,

    /// Show all streams and sizes, not only the most important ones
    #[arg(long)]
    all: bool,

    /// Exit with 1 if there is a finding of this severity or worse: high, warn
    #[arg(long, value_name = "SEVERITY", hide_possible_values = true)]
    fail_on: Option<FailOn>,

    #[command(flatten)]
    result: OutputOptions<PageFile>,

    /// Write a timeline of the run, for ui.perfetto.dev or chrome://tracing
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,

    /// Write the screen to a file instead of standard error
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write the whole recording, for a bug report about weir
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Judge and show a file that --record wrote; run no program
    #[arg(long, value_name = "FILE", hide = true)]
    replay: Option<PathBuf>,
}

/// Returns the parser of `--engine`.
fn engine_parser() -> impl TypedValueParser<Value = BackendChoice> {
    const HELP: [&str; 4] = [
        "The best engine that works here",
        "eBPF programs in the kernel",
        "Stops at system calls",
        "Samples of /proc",
    ];
    let values = BackendChoice::NAMES.into_iter().zip(HELP);
    PossibleValuesParser::new(values.map(|(name, help)| PossibleValue::new(name).help(help)))
        .try_map(|name| name.parse::<BackendChoice>())
}

/// The values of `--fail-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Bytes are lost, or most of the time.
    High,
    /// Time is wasted, or bytes are at risk.
    Warn,
}

impl From<FailOn> for Severity {
    fn from(fail_on: FailOn) -> Self {
        match fail_on {
            FailOn::High => Self::High,
            FailOn::Warn => Self::Warn,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  weir trace -- ./program < input > output   report on a run of a program
  weir trace -p 4711 -t 10s                  trace a running process for 10 s
  weir trace --json trace.json -- make       also write the result as JSON
  weir trace --html t.html -- ./program      a page with pictures
  weir trace --fail-on high -q -- ./test     in CI: status 1 if bytes are lost
  weir trace --exact --seccomp -- ./program  every call, at a lower cost
  weir trace --timeline t.json -- ./program  open t.json in ui.perfetto.dev
  weir trace -o report.txt -- sh -c 'a | b'  keep the report off the terminal

Signals: Ctrl-C and Ctrl-\\ go to the command. weir passes SIGTERM, SIGHUP,
SIGUSR1 and others on to it. The report comes when the command has ended.

Exit status: the command's own, or
  128+N  signal N ended the command
  0      with --pid or --time, if the process or the command continues; with
         --pid, a process that ends while it is traced gives its own status
  1      the status would be 0, but --fail-on found something
  2      wrong usage
  125    weir failed: a file of the report cannot be opened, and the command was
         not started; or the report could not be written, and the command was
         run to its end
  126    the command cannot be executed
  127    the command was not found
If both the command and weir fail, the status is the command's.";

/// Runs `weir trace` and returns the exit status.
pub fn run(args: Args) -> ExitCode {
    if let Err(error) = check_stdout(&args).and_then(|()| check_engine(&args)) {
        eprintln_lossy!("weir: {error}\nweir: try 'weir trace --help'");
        return ExitCode::from(USAGE);
    }
    if args.why {
        print_hooks(args.btf.as_deref());
    }
    // Before the run: weir closes the descriptors that only the command needs.
    let planner = HostPlanner::read(args.pid.as_slice());
    let traced = TraceReport::open(&args).and_then(|report| Ok((report, recording(&args)?)));
    match traced {
        Ok((report, (recording, cleanup))) => {
            let status = judge_and_report(&args, report, &recording, &planner);
            drop(cleanup);
            // Never freed: the process ends now, and freeing the events of a long run one by one delays that end.
            std::mem::forget(recording);
            ExitCode::from(status)
        }
        Err(failure) => {
            eprintln_lossy!("weir: {}", failure.text);
            ExitCode::from(failure.status)
        }
    }
}

/// Prints the kernel hooks of the eBPF engine, or why it does not work here.
fn print_hooks(btf: Option<&Path>) {
    match weir_observe::doctor::ebpf_hooks(btf) {
        Ok(hooks) => {
            // The tests of kernels read whole lines.
            let style = weir_report::Style { width: usize::MAX, ..weir_report::Style::default() };
            let lines = weir_report::doctor::hooks(&hooks, &style);
            eprintln_lossy!("weir: hooks of ebpf\n{}", lines.join("\n"))
        }
        Err(error) => eprintln_lossy!("weir: {error}"),
    }
}

/// Fails if two results go to standard output: a reader could not separate them.
fn check_stdout(args: &Args) -> Result<(), String> {
    match stdout_results(args) {
        0 | 1 => Ok(()),
        _ => Err("only one of --json, --html, --timeline, --output and --record can use standard output (-)"
            .into()),
    }
}

/// Returns the number of results that go to standard output.
fn stdout_results(args: &Args) -> usize {
    let files = [&args.timeline, &args.output, &args.record].into_iter().flatten();
    files.filter(|path| is_stdout(path)).count() + args.result.documents_on_stdout()
}

/// Fails if the engine cannot do what the other options ask for.
fn check_engine(args: &Args) -> Result<(), String> {
    const ADVICE: &str = "leave out --engine, or use --engine ptrace";
    match args.engine {
        BackendChoice::Ebpf | BackendChoice::Proc if args.seccomp => {
            Err(format!("--seccomp works only with the engine ptrace: {ADVICE}"))
        }
        BackendChoice::Proc if args.exact => {
            Err(format!("--exact records every call, but the engine sample records none: {ADVICE}"))
        }
        _ => Ok(()),
    }
}

/// Records the run, or reads the recording of `--replay`. A traced command has ended when the cleanup is dropped.
fn recording(args: &Args) -> Result<(Recording, DeferredCleanup), CommandFailure> {
    if let Some(path) = &args.replay {
        return Ok((read_recording(path)?, DeferredCleanup::default()));
    }
    let directory = Path::new(".");
    let cached_prices = prices::cached(directory);
    let options = trace_options(args, cached_prices.unwrap_or_default())?;
    let (mut recording, cleanup) = weir_observe::record(&options)?;
    // Unknown prices are measured after the run, so that the program does not wait for them.
    recording.prices = cached_prices.unwrap_or_else(|| prices::prices(directory));
    if args.result.wants_document() {
        recording.environment = weir_bench::settings::environment(directory);
    }
    if recording.waits_for_devices() {
        recording.prices.sync_ns = prices::sync_ns(directory).unwrap_or(recording.prices.sync_ns);
    }
    Ok((recording, cleanup))
}

fn trace_options(args: &Args, prices: Prices) -> Result<TraceOptions, CommandFailure> {
    let target = match args.pid {
        Some(pid) => TraceTarget::Process(ProcessIdentity::started_at(pid, args.start_ticks)),
        None => TraceTarget::Command(args.command.clone()),
    };
    let stop = signals::tracer_stop_flag(args.pid.is_none()).map_err(CommandFailure::of_weir)?;
    Ok(TraceOptions {
        target,
        backend: if args.seccomp { BackendChoice::Ptrace } else { args.engine },
        exact: args.exact,
        btf: args.btf.clone(),
        every_call: args.every_call,
        seccomp: args.seccomp,
        inherited: if stdout_results(args) > 0 { InheritedFds::Stdout } else { InheritedFds::Nothing },
        limit: args.time,
        stop,
        prices,
    })
}

fn read_recording(path: &Path) -> Result<Recording, CommandFailure> {
    const ADVICE: &str = "give a file that 'weir trace --record' wrote";
    let text = std::fs::read_to_string(path)
        .map_err(|error| CommandFailure::of_weir(Error::system("read", path, &error, ADVICE).to_string()))?;
    serde_json::from_str(&text).map_err(|error| {
        CommandFailure::of_weir(format!("{}: not a recording ({error}); {ADVICE}", path.display()))
    })
}

/// Judges the recording, writes the results and returns the exit status.
fn judge_and_report(args: &Args, report: TraceReport, recording: &Recording, planner: &HostPlanner) -> u8 {
    let streams = StreamTable::of(recording);
    let (judgement, streams) = diagnose_with_streams(&streams, planner);
    let errors = report.write(recording, &judgement, streams);
    for error in &errors {
        eprintln_lossy!("weir: {error}");
    }
    let worst = judgement.findings.iter().map(|finding| finding.severity).max();
    let finding_fails = args.fail_on.is_some_and(|fail_on| worst >= Some(Severity::from(fail_on)));
    let exit = recording.exit.filter(|_| args.replay.is_none());
    if let Some(Exit::Signal(signal)) = exit.filter(|_| args.pid.is_none()) {
        signals::note_end_of_command(signal);
    }
    let exit = exit.or_else(|| unkillable::leaving().map(Exit::Signal));
    exit_status::after_command(exit, !errors.is_empty(), finding_fails)
}
