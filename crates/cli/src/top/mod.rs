//! `weir top`: the command line, and what is done with it.

mod app;
mod child;
mod live;
mod once;
mod terminal;

use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use weir_model::duration;
use weir_probe::survey::Scope;
use weir_report::top::{Selection, Sort};

use crate::output::Output;
use crate::{FAILED, USAGE, screen};

/// See which processes make tiny calls, and in whose buffers bytes wait, live
///
/// Every process is looked at by /proc: its read and write calls a second and what they move, its time in the
/// kernel. In those that sleep, weir reads what they have written and not handed to the kernel yet (glibc, musl,
/// libweir, CPython, Perl, Ruby, Tcl, Rust). Nothing is stopped and no privilege is needed; of other users'
/// processes, marked by !, less is seen. Where standard output is no terminal it is one look, as with --once.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(mut_arg("json", |arg| arg.help(JSON)))]
#[command(mut_arg("quiet", |arg| arg.help("No table: only the file and errors").requires("json")))]
pub struct Args {
    /// Print one look and end: what happened within one interval
    #[arg(long)]
    once: bool,

    /// Time between two looks, e.g. 500ms; at least 100ms
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    interval: Duration,

    /// Sort by: tiny calls, reads, writes, size of a call, system time, pending bytes, age of them, pid
    #[arg(long, short, value_name = "KEY", default_value = "tiny", hide_possible_values = true)]
    sort: Key,

    /// Only processes with this in their command, number or the path of a stream with pending bytes
    #[arg(long, short, value_name = "TEXT", default_value = "", hide_default_value = true)]
    filter: String,

    /// Only these processes; may be repeated
    #[arg(long, short, value_name = "PID", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pid: Vec<u32>,

    /// Rows of the table (20) and processes in the JSON (all)
    #[arg(long, short = 'n', value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..))]
    rows: Option<u32>,

    #[command(flatten)]
    output: Output,
}

const JSON: &str = "Write the last look as JSON (schema weir-top/1); - is standard output and needs --once";

const EXAMPLES: &str = "\
Examples:
  weir top                              the live screen; ? shows the keys
  weir top --once                       one look of a second, as a table
  weir top --once --sort age            whose bytes have waited longest
  weir top --once --quiet --json -      the same for scripts; all processes
  weir top --filter python              only what has python in its command
  weir top --pid 4711,4712 -i 200ms     two processes, five looks a second

Keys: s < > sort · / filter · p peek · f flush (asks) · t trace · space pause · ? help · q quit

Exit status: 0 well; 1 what was asked for failed, such as a process that is not there; 2 wrong usage; 128+N when
signal N ended it.";

/// A sort key as clap knows it.
#[derive(Debug, Clone, Copy)]
struct Key(Sort);

impl ValueEnum for Key {
    fn value_variants<'a>() -> &'a [Self] {
        const KEYS: [Key; Sort::ALL.len()] = {
            let (mut keys, mut at) = ([Key(Sort::Tiny); Sort::ALL.len()], 0);
            while at < keys.len() {
                keys[at] = Key(Sort::ALL[at]);
                at += 1;
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
        time if time < Duration::from_millis(100) => Err("at least 100ms: looking itself takes time".into()),
        time => Ok(time),
    }
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    let live = !args.once && screen::is_terminal();
    if live && args.output.to_stdout() {
        complain!("weir: --json - needs --once: the screen has standard output\nweir: try 'weir top --help'");
        return ExitCode::from(USAGE);
    }
    if !live && !args.once {
        complain!("weir: standard output is no terminal: one look, as with --once");
    }
    match look(&args, live) {
        Ok(status) => ExitCode::from(status),
        Err(text) => {
            complain!("weir: {text}");
            ExitCode::from(FAILED)
        }
    }
}

fn look(args: &Args, live: bool) -> Result<u8, String> {
    there_are(&args.pid)?;
    let mut output = args.output.open()?;
    let pids = (!args.pid.is_empty()).then(|| args.pid.clone());
    let selection = Selection { sort: args.sort.0, filter: args.filter.clone() };
    let rows = args.rows.map(|rows| rows as usize);
    let (survey, selection, status) = if live {
        let ended = live::run(Scope { pids, thorough: false }, selection, args.interval)?;
        (ended.survey, ended.selection, ended.status)
    } else {
        let scope = Scope { pids, thorough: true };
        let survey = once::run(scope, args.interval);
        if output.has_screen() {
            once::print(&survey, &selection, rows)?;
        }
        (survey, selection, 0)
    };
    output.write(&weir_report::top::document(&survey, &selection, rows))?;
    Ok(status)
}

/// Are the processes that were asked for there?
fn there_are(pids: &[u32]) -> Result<(), String> {
    match pids.iter().find(|pid| !weir_probe::proc::exists(**pid)) {
        Some(pid) => {
            Err(format!("process {pid}: ESRCH: there is no such process; 'weir top' shows those that are"))
        }
        None => Ok(()),
    }
}
