//! `weir bench`: the command line, and what is done with it.

mod compare;
mod plan;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use clap::Subcommand;
use weir_bench::axes::{Advice, CacheState, SyncKind};
use weir_bench::document::{Started, document};
use weir_bench::place::Place;
use weir_bench::plan::Cell;
use weir_bench::run::{self, Settings};
use weir_bench::{Error, image, machine, needs};
use weir_model::Size;
use weir_model::bench::BenchDocument;

use crate::output::{OutputFiles, OutputOptions, TableFiles};
use crate::progress::Bar;
use crate::signals::stop_flag;
use crate::values::{completed_words, parse_nonzero_duration};
use crate::{FAILED, USAGE, console};
use weir_tui::style::stdout_style;

/// Measure what buffering costs on this machine
///
/// Times workloads × methods × record sizes × buffers × sync policies × cache states × file systems, in
/// interleaved rounds of samples that are a process each, until the intervals are tight or the budget is
/// spent; prints table, plot, cost model, knee and answers. Works only in private directories that it
/// makes and removes.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(mut_arg("json", |arg| arg.help("Write the result as JSON (schema weir-bench/1); - is standard output")))]
#[command(mut_arg("markdown", |arg| arg.help("Write table and answers as Markdown; - is standard output")))]
#[command(mut_arg("quiet", |arg| arg.help("Print only errors: no screen, no progress bar")))]
pub struct Args {
    #[command(subcommand)]
    verb: Option<SubVerb>,

    /// What the measured program does: copy, write, read, translate, log, copy1-copy2 (the five
    /// questions), all
    #[arg(value_name = "WORKLOAD", value_parser = completed_words(plan::workload_names()), hide_possible_values = true)]
    workloads: Vec<String>,

    /// Methods, or all; --list explains them [default: syscall,stdio,stdio-char and what suits the workload]
    #[arg(long, visible_alias = "methods", value_name = "LIST", value_delimiter = ',', value_parser = completed_words(plan::method_names()), hide_possible_values = true)]
    method: Vec<String>,

    /// What one call of the program moves: sizes such as 1,64,4K,1MiB; for log the line's length [default:
    /// 1,2,4,…,1024,4096,16384,65536]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_size)]
    records: Vec<Size>,

    /// User-space buffer of the methods that have one: sizes, or default
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_buffer)]
    buffer: Vec<Option<Size>>,

    /// Buffering of the stdio methods, setvbuf(3): none, line, full, default
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = completed_words(["none", "line", "full", "default"]), hide_possible_values = true)]
    mode: Vec<String>,

    /// When bytes are forced to the device: none, end, fsync, fdatasync (each also :N records or :SIZE,
    /// e.g. fsync:16, fdatasync:1MiB), o_dsync, o_sync, rwf_dsync, sync_file_range, all
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = completed_words(with_all(SyncKind::ALL.iter().map(|kind| kind.name()))), hide_possible_values = true)]
    sync: Vec<String>,

    /// Page cache before each sample: warm, cold
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = completed_words(CacheState::ALL.iter().map(|state| state.name())), hide_possible_values = true)]
    cache: Vec<String>,

    /// posix_fadvise(2) advice on the input: normal, random, sequential, willneed, dontneed, noreuse, all
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 0..=1, default_missing_value = "all", value_parser = completed_words(with_all(Advice::ALL.iter().map(|advice| advice.name()))), hide_possible_values = true)]
    advice: Vec<String>,

    /// Directory to work in; repeat it to compare file systems [default: the current one]
    #[arg(long, value_name = "DIR")]
    dir: Vec<PathBuf>,

    /// Fresh file systems on loop images, made and removed as root: ext2, ext3, ext4, xfs, btrfs, tmpfs
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = completed_words(image::names()), hide_possible_values = true)]
    fs: Vec<String>,

    /// Bytes of the whole job [default: 100MB, less on a small machine; log 2MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    size: Option<Size>,

    /// Records that one readv/writev call moves (method vector)
    #[arg(long, value_name = "N", default_value_t = 16)]
    vector: u32,

    /// Requests in flight (method io_uring)
    #[arg(long, value_name = "N", default_value_t = 8)]
    queue_depth: u32,

    /// Register the buffers (method io_uring)
    #[arg(long)]
    registered: bool,

    /// Time for everything, e.g. 20s, 3m
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_nonzero_duration)]
    budget: Duration,

    /// Intervals this tight are enough, in percent: ± half the width
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    precision: f64,

    /// Run slow cells whole instead of measuring a part and scaling it
    #[arg(long)]
    exact: bool,

    /// Measure every row just so often, however long it takes; the budget then says how long a sample may be
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: Option<u32>,

    /// Order of the rounds, to repeat a run
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Published tables to measure too (without a WORKLOAD: only these) and to show beside ours: a name,
    /// the start of several (tlpi-13), or all
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = completed_words(with_all(plan::table_names())), hide_possible_values = true)]
    published: Vec<String>,

    /// List workloads, methods, sync policies, published tables
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    output: OutputOptions<TableFiles>,
}

#[derive(Subcommand)]
enum SubVerb {
    Compare(compare::Args),
}

/// What a row takes at the least: two attempts and a sample, with starting and preparing each.
const LEAST_CELL_S: f64 = 0.03;

const EXAMPLES: &str = "\
Examples:
  weir bench copy                                      the textbook's table, here
  weir bench copy --method all --records 4K,64K,1MiB   every way to copy
  weir bench copy1-copy2                               five questions about stdio, answered
  weir bench write --size 1MB --sync none,end,o_sync   what durability costs
  weir bench read --cache cold --advice                the six advices on a cold file
  weir bench log --mode none,line,full --records 64,4096
  weir bench copy --fs ext4,xfs,btrfs,tmpfs            file systems side by side (root)
  weir bench --published tlpi-13 --budget 170s         the published tables beside ours
  weir bench copy --json a.json; weir bench compare a.json b.json

Rows marked ~ are measured in part and scaled. 'tie': the difference is inside the noise that the same
thing, measured twice in each round, shows.

Exit status: 0 well; 1 the thing asked for failed; 2 wrong usage; 130 stopped by Ctrl-C (what was measured
until then is printed).";

fn with_all(names: impl IntoIterator<Item = &'static str>) -> impl Iterator<Item = &'static str> {
    names.into_iter().chain(["all"])
}

fn parse_size(text: &str) -> Result<Size, String> {
    match text.parse::<Size>().map_err(|error| error.to_string())? {
        Size(0) => Err("0 bytes: there is nothing to move".into()),
        size => Ok(size),
    }
}

fn parse_buffer(text: &str) -> Result<Option<Size>, String> {
    if text == "default" { Ok(None) } else { parse_size(text).map(Some) }
}

/// Runs the verb.
pub fn run(args: Args) -> ExitCode {
    let done = match &args.verb {
        Some(SubVerb::Compare(args)) => compare::run(args),
        None if args.list => {
            console::print_screen(&plan::list()).map(|()| ExitCode::SUCCESS).map_err(Error::Failed)
        }
        None => measure(&args),
    };
    done.unwrap_or_else(|error| {
        complain!("weir: {error}");
        match error {
            Error::Usage(_) => {
                complain!("weir: try 'weir bench --help'");
                ExitCode::from(USAGE)
            }
            _ => ExitCode::from(FAILED),
        }
    })
}

fn measure(args: &Args) -> Result<ExitCode, Error> {
    let started = Started { command: std::env::args().collect(), at: SystemTime::now() };
    let stop = stop_flag().map_err(Error::Failed)?;
    let plan = plan::plan(args)?;
    needs::check_memory(&plan.cells, machine::meminfo_bytes("MemAvailable"))?;
    let files = args.output.open().map_err(Error::Failed)?;
    let places = open_places(&plan)?;
    let settings = Settings {
        budget: args.budget,
        precision: (args.precision / 100.0).max(0.0),
        exact: args.exact,
        rounds: args.rounds.map(|rounds| rounds as usize),
        seed: args.seed,
    };
    let least = plan.cells.len() as f64 * LEAST_CELL_S;
    if least > args.budget.as_secs_f64() {
        complain!(
            "weir: {} rows take about {} s at least; the budget of {} s gives each one sample: a longer --budget, or \
             fewer values in the lists, tells more",
            plan.cells.len(),
            least.ceil(),
            args.budget.as_secs_f64()
        );
    }
    let mut bar = Bar::new(args.output.is_quiet());
    let mut taken = run::run(plan.cells, &places, &settings, &stop, &mut bar);
    bar.finish();
    let error = taken.error.take();
    let document = document(&taken, &places, &plan.published, started);
    let closed: Vec<_> = places.into_iter().map(Place::close).collect();
    let any = document.rows.iter().any(|row| row.elapsed_s.is_some());
    if any || error.is_none() {
        write_results(files, &document).map_err(Error::Failed)?;
    }
    // What went wrong first says most; that a directory could not be removed comes after it.
    match error.map_or_else(|| closed.into_iter().find_map(Result::err), Some) {
        Some(error) => Err(error),
        None if stop.load(Ordering::Relaxed) => {
            complain!("weir: stopped; the figures are those of {} rounds", document.rounds.len());
            Ok(ExitCode::from(130))
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

fn open_places(plan: &plan::Plan) -> Result<Vec<Place>, Error> {
    let need = |place: usize, cells: &[Cell]| needs::needed_bytes(cells, place);
    plan.places.iter().enumerate().map(|(i, request)| Place::open(request, need(i, &plan.cells))).collect()
}

/// Prints the screen and writes the files.
fn write_results(mut files: OutputFiles, document: &BenchDocument) -> Result<(), String> {
    if files.shows_screen() {
        console::print_screen(&weir_report::bench::screen(document, &stdout_style()))?;
    }
    files.write_json(document)?;
    files.write_csv(|| weir_report::bench::csv(document))?;
    files.write_markdown(|| weir_report::bench::markdown(document))
}
