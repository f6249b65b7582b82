//! `weir top`: parses the command line and connects the survey with the live screen or the table.

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use weir_inspect::survey::{SurveyScope, Surveyor};
use weir_model::duration;
use weir_model::top::Survey;
use weir_report::top::{Selection, Sort};
use weir_sys::hang_guard::{GuardedWork, HangGuard};
use weir_sys::process_access;
use weir_sys::process_identity::ProcessIdentity;
use weir_tui::style::stdout_style;

use crate::exit_status::{FAILED, SIGNAL_BASE, USAGE};
use crate::output::{OutputFiles, OutputOptions, joined};
use crate::values::parse_pid;
use crate::{console, signals};

/// Show the processes that make tiny calls or hold pending bytes, live
///
/// weir reads /proc for every process: read and write calls per second, the bytes that they move, and the time in the
/// kernel. In sleeping processes weir also reads the buffers. It shows the bytes that the program has written but the
/// kernel has not received yet (glibc, musl, libstdc++, libc++, libweir, CPython, Perl, Ruby, Tcl, OCaml, Rust, Go).
///
/// No process is stopped. No privilege is needed. The mark ! means that a process belongs to another user: weir shows
/// less of it. If standard output is not a terminal, weir prints one table, as with --once.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(mut_arg("json", |arg| arg.help(JSON_HELP)))]
#[command(mut_arg("quiet", |arg| arg.help("Print only errors; needs --json").requires("json")))]
pub struct Args {
    /// Print one table about one interval, then exit
    #[arg(long)]
    once: bool,

    /// Time between two updates, e.g. 500ms; at least 100ms
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    interval: Duration,

    /// Sort by tiny (tiny calls), reads, writes, size (bytes per call), system (time in the kernel), pending (pending
    /// bytes), age (of the oldest pending bytes) or pid
    #[arg(long, short, value_name = "KEY", default_value = "tiny", hide_possible_values = true)]
    sort: SortKey,

    /// Show only processes with TEXT in the command, in the PID or in the path of a stream with pending bytes
    #[arg(long, short, value_name = "TEXT", default_value = "", hide_default_value = true)]
    filter: String,

    /// Show only these processes; can be repeated
    #[arg(long, short, value_name = "PID", value_delimiter = ',', value_parser = parse_pid)]
    pid: Vec<u32>,

    /// Number of processes in the table (default 20) and in the JSON file (default all)
    #[arg(long, short = 'n', value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..))]
    rows: Option<u32>,

    #[command(flatten)]
    output: OutputOptions,
}

const JSON_HELP: &str =
    "Write the last table as JSON (schema weir-top/1); - is standard output and needs --once";

const EXAMPLES: &str = "\
Examples:
  weir top                            the live screen; ? shows the keys
  weir top --once                     one table about one second
  weir top --once --sort age          the oldest pending bytes first
  weir top --once --quiet --json -    for scripts: all processes as JSON
  weir top --filter python            only commands that contain python
  weir top --pid 4711,4712 -i 200ms   two processes, five updates a second

Keys: s < > sort, / filter, p peek, f flush (asks first), t trace, space pause,
? help, q quit

Exit status:
  0      success
  1      failure, e.g. no such process
  2      wrong usage, or the file of --json cannot be created
  128+N  signal N ended weir";

/// Rows of the table without `--rows`: table and facts fit on a terminal of 24 rows.
const DEFAULT_ROWS: usize = 20;

/// The values of `--sort`.
#[derive(Debug, Clone, Copy)]
struct SortKey(Sort);

impl ValueEnum for SortKey {
    fn value_variants<'a>() -> &'a [Self] {
        const KEYS: [SortKey; Sort::ALL.len()] = {
            let (mut keys, mut index) = ([SortKey(Sort::Tiny); Sort::ALL.len()], 0);
            while index < keys.len() {
                keys[index] = SortKey(Sort::ALL[index]);
                index += 1;
            }
            keys
        };
        &KEYS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    match duration::parse(text)? {
        interval if interval < Duration::from_millis(100) => {
            Err("use at least 100ms: each update costs CPU time".into())
        }
        interval => Ok(interval),
    }
}

/// Runs `weir top` and returns the exit status.
pub fn run(args: &Args) -> ExitCode {
    let live = !args.once && console::stdout_is_terminal();
    if live && args.output.documents_on_stdout() > 0 {
        eprintln_lossy!(
            "weir: --json - needs --once: the live screen uses standard output\nweir: try 'weir top --help'"
        );
        return ExitCode::from(USAGE);
    }
    if !live && !args.once {
        eprintln_lossy!("weir: standard output is not a terminal: printing one table, as with --once");
    }
    let output = match args.output.open_or_report() {
        Ok(output) => output,
        Err(status) => return status,
    };
    match survey(args, live, output) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln_lossy!("weir: {error}");
            ExitCode::from(FAILED)
        }
    }
}

/// Shows the live screen or prints one table, writes the JSON file, and returns the exit status.
fn survey(args: &Args, live: bool, mut output: OutputFiles) -> Result<u8, String> {
    let processes = named_processes(&args.pid)?;
    if !weir_sys::proc::is_mounted() {
        return Err("/proc is not mounted here, and weir reads it: mount -t proc proc /proc".into());
    }
    let selection = Selection { sort: args.sort.0, filter: args.filter.clone(), named: processes.is_some() };
    let rows = args.rows.map(|rows| rows as usize);
    let mut printed = Ok(());
    let (survey, selection, status) = if live {
        show_live(SurveyScope { processes, thorough: false }, selection, args.interval)?
    } else {
        // A read of a file of /proc that never returns ends weir with a sentence.
        let _guard = HangGuard::start(GuardedWork::Run, None, None);
        let survey = survey_once(SurveyScope { processes, thorough: true }, args.interval);
        if output.shows_screen() {
            printed = print_table(&survey, &selection, rows);
        }
        (survey, selection, 0)
    };
    let written = output.write_document(&weir_report::top::document(&survey, &selection, rows));
    joined([printed, written]).map(|()| status)
}

/// Returns the processes with these numbers; None for all.
fn named_processes(pids: &[u32]) -> Result<Option<Vec<ProcessIdentity>>, String> {
    for &pid in pids {
        if weir_sys::proc::is_hidden(pid) || !weir_sys::proc::exists(pid) {
            return Err(process_access::absent(pid).to_string());
        }
    }
    Ok((!pids.is_empty()).then(|| pids.iter().copied().map(ProcessIdentity::of).collect()))
}

/// Returns what the screen showed last, and the exit status.
fn show_live(
    scope: SurveyScope,
    selection: Selection,
    interval: Duration,
) -> Result<(Survey, Selection, u8), String> {
    let signal = signals::stop_signal()?;
    let mut surveyor = Surveyor::new(scope);
    let session = weir_tui::top::run(|| surveyor.sample(), selection, interval, &signal)
        .map_err(|error| format!("terminal: {error}; without a terminal use 'weir top --once'"))?;
    let status = match signal.load(Ordering::Relaxed) {
        0 => 0,
        number => SIGNAL_BASE + number as u8,
    };
    Ok((session.survey, session.selection, status))
}

/// Returns what the processes did within one interval.
fn survey_once(scope: SurveyScope, interval: Duration) -> Survey {
    let mut surveyor = Surveyor::new(scope);
    surveyor.sample();
    std::thread::sleep(interval);
    surveyor.sample()
}

fn print_table(survey: &Survey, selection: &Selection, rows: Option<usize>) -> Result<(), String> {
    let blocks = weir_report::top::blocks(survey, selection, rows.unwrap_or(DEFAULT_ROWS));
    console::print_screen(&weir_report::terminal::text(&blocks, &stdout_style()))
}
