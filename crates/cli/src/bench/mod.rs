//! `weir bench`: parses the command line, runs the measurement, prints and writes the result.

mod compare;
mod export;
mod list;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use clap::Subcommand;
use weir_bench::axes::{Advice, CacheState, SyncKind};
use weir_bench::directory::BenchDirectory;
use weir_bench::document::{Started, document};
use weir_bench::run::{self, Settings};
use weir_bench::selection::{BenchPlan, BenchSelection, method_names, table_names, workload_names};
use weir_bench::{Error, loop_image, machine, needs};
use weir_model::Size;
use weir_model::bench::BenchDocument;
use weir_model::number::counted;
use weir_tui::style::stdout_style;

use crate::console;
use crate::exit_status::{FAILED, INTERRUPTED, USAGE};
use crate::output::{OutputFiles, OutputOptions, TableFiles, joined, status_after};
use crate::progress::TerminalProgress;
use crate::signals::stop_flag;
use crate::values::{completed_words, parse_nonzero_duration, parse_nonzero_size};
use export::ExportOptions;

/// Measure what buffering costs on this machine
///
/// weir measures each combination of the chosen workloads, methods, record sizes, buffers, sync policies, cache states
/// and file systems. Each sample is a process of its own. The samples run in interleaved rounds until the intervals are
/// tight or the budget is spent. weir then prints a table, a plot, a cost model, the knee and answers.
///
/// weir writes only in private directories, which it creates and removes.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(mut_arg("json", |arg| arg.help("Write the result as JSON (schema weir-bench/1); - is standard output")))]
#[command(mut_arg("markdown", |arg| arg.help("Write table and answers as Markdown; - is standard output")))]
#[command(mut_arg("quiet", |arg| arg.help("Print only errors: no screen, no progress bar")))]
pub struct Args {
    #[command(subcommand)]
    verb: Option<SubVerb>,

    /// Work of the measured program: copy, write, read, translate, log, copy1-copy2 (the five questions), all
    #[arg(value_name = "WORKLOAD", value_parser = completed_words(workload_names()), hide_possible_values = true)]
    workloads: Vec<String>,

    /// Methods, or all; --list explains them [default: syscall,stdio,stdio-char and others that fit the workload]
    #[arg(long, visible_alias = "methods", value_name = "LIST", value_delimiter = ',', value_parser = completed_words(method_names()), hide_possible_values = true)]
    method: Vec<String>,

    /// Bytes per call of the program: sizes such as 1,64,4K,1MiB; for log the length of a line [default:
    /// 1,2,4,…,1024,4096,16384,65536]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_nonzero_size)]
    records: Vec<Size>,

    /// User-space buffer of the methods that have one: sizes, or default
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_buffer)]
    buffer: Vec<Option<Size>>,

    /// Buffering mode of the stdio methods, see setvbuf(3): none, line, full, default
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = completed_words(["none", "line", "full", "default"]), hide_possible_values = true)]
    mode: Vec<String>,

    /// When bytes are forced to the device: none, end, fsync, fdatasync (each also :N records or :SIZE, e.g. fsync:16,
    /// fdatasync:1MiB), o_dsync, o_sync, rwf_dsync, sync_file_range, all
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = completed_words(with_all(SyncKind::ALL.iter().map(|kind| kind.name()))), hide_possible_values = true)]
    sync: Vec<String>,

    /// State of the page cache before each sample: warm, cold
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = completed_words(CacheState::ALL.iter().map(|state| state.name())), hide_possible_values = true)]
    cache: Vec<String>,

    /// posix_fadvise(2) advice on the input: normal, random, sequential, willneed, dontneed, noreuse, all
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 0..=1, default_missing_value = "all", value_parser = completed_words(with_all(Advice::ALL.iter().map(|advice| advice.name()))), hide_possible_values = true)]
    advice: Vec<String>,

    /// Directory to work in; repeat it to compare file systems. With copy and two directories, weir reads from the first and
    /// writes to the second [default: the current one]
    #[arg(long, value_name = "DIR")]
    dir: Vec<PathBuf>,

    /// Create these file systems on loop images and remove them afterwards (root only): ext2, ext3, ext4, xfs, btrfs,
    /// tmpfs
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = completed_words(loop_image::names()), hide_possible_values = true)]
    fs: Vec<String>,

    /// Bytes of the whole job [default: 100MB, less on a machine with little memory; log 2MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_nonzero_size)]
    size: Option<Size>,

    /// Records per readv/writev call (method vector)
    #[arg(long, value_name = "N", default_value_t = 16)]
    vector: u32,

    /// Requests in flight (method io_uring)
    #[arg(long, value_name = "N", default_value_t = 8)]
    queue_depth: u32,

    /// Register the buffers (method io_uring)
    #[arg(long)]
    registered: bool,

    /// Time for the whole run, e.g. 20s, 3m
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_nonzero_duration)]
    budget: Duration,

    /// Stop when half the width of each interval is at most PERCENT of the figure
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    precision: f64,

    /// Run slow rows completely instead of measuring a part and scaling it
    #[arg(long)]
    exact: bool,

    /// Measure each row exactly N times, however long it takes; the budget then limits the length of a sample
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: Option<u32>,

    /// Seed of the order of the rounds, to repeat a run
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Measure published tables too and show them beside the figures: names, the start of names (tlpi-13), or all;
    /// without a WORKLOAD only these
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = completed_words(with_all(table_names())), hide_possible_values = true)]
    published: Vec<String>,

    /// List workloads, methods, sync policies and published tables
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    export: ExportOptions,

    #[command(flatten)]
    output: OutputOptions<TableFiles>,
}

#[derive(Subcommand)]
enum SubVerb {
    Compare(compare::Args),
}

const EXAMPLES: &str = "\
Examples:
  weir bench copy                                     read/write and stdio, warm
  weir bench copy --method all --records 4K,64K,1MiB  every way to copy
  weir bench copy1-copy2                              answers about stdio
  weir bench write --size 1MB --sync none,end,o_sync  what durability costs
  weir bench read --cache cold --advice               each advice, cold file
  weir bench log --mode none,line,full --records 64,4096
  weir bench copy --fs ext4,xfs,btrfs,tmpfs           file systems (root only)
  weir bench copy --dir /data --dir /mnt/backup       block size of a backup
  weir bench --published tlpi-13-1                    the textbook's table, cold
  weir bench --published tlpi-13 --budget 170s        all tables of its chapter
  weir bench copy --html copy.html --open             a page with pictures
  weir bench copy --json a.json; weir bench compare a.json b.json

~ marks a row that was measured in part and scaled. 'tie' means that the
difference is within the noise. To find the noise, each round measures some
rows twice.

Exit status:
  0    success
  1    failure
  2    wrong usage, or the file of --json cannot be created
  130  stopped by Ctrl-C; the figures until then are printed";

fn with_all(names: impl IntoIterator<Item = &'static str>) -> impl Iterator<Item = &'static str> {
    names.into_iter().chain(["all"])
}

fn parse_buffer(text: &str) -> Result<Option<Size>, String> {
    if text == "default" { Ok(None) } else { parse_nonzero_size(text).map(Some) }
}

impl Args {
    fn selection(&self) -> BenchSelection {
        BenchSelection {
            workloads: self.workloads.clone(),
            methods: self.method.clone(),
            records: self.records.iter().map(|size| size.0).collect(),
            buffers: self.buffer.iter().map(|size| size.map(|size| size.0)).collect(),
            modes: self.mode.clone(),
            syncs: self.sync.clone(),
            caches: self.cache.clone(),
            advices: self.advice.clone(),
            dirs: self.dir.clone(),
            file_systems: self.fs.clone(),
            bytes: self.size.map(|size| size.0),
            vector_records: self.vector,
            queue_depth: self.queue_depth,
            registered: self.registered,
            published: self.published.clone(),
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            budget: self.budget,
            precision: (self.precision / 100.0).max(0.0),
            exact: self.exact,
            rounds: self.rounds.map(|rounds| rounds as usize),
            seed: self.seed,
        }
    }
}

/// Runs `weir bench` and returns the exit status.
pub fn run(args: Args) -> ExitCode {
    let result = match &args.verb {
        Some(SubVerb::Compare(args)) => compare::run(args),
        None if args.list => {
            console::print_screen(&list::text()).map(|()| ExitCode::SUCCESS).map_err(Error::Failed)
        }
        None => measure(&args),
    };
    result.unwrap_or_else(|error| {
        eprintln_lossy!("weir: {error}");
        match error {
            Error::Usage(_) => {
                eprintln_lossy!("weir: try 'weir bench --help'");
                ExitCode::from(USAGE)
            }
            _ => ExitCode::from(FAILED),
        }
    })
}

fn measure(args: &Args) -> Result<ExitCode, Error> {
    let started =
        Started { command: std::env::args_os().map(weir_model::text_of).collect(), at: SystemTime::now() };
    let stop = stop_flag().map_err(Error::Failed)?;
    let BenchPlan { cells, directories, published } = args.selection().plan()?;
    needs::check_memory(&cells, machine::meminfo_bytes("MemAvailable"))?;
    let files = args.output.open().map_err(Error::Usage)?;
    args.export.check(&files).map_err(Error::Failed)?;
    let open = |(index, request)| {
        BenchDirectory::open(request, needs::needed_bytes(&cells, index)).map_err(|error| match error {
            Error::NoSpace { .. } => Error::Failed(format!("{error}, or a smaller --size")),
            other => other,
        })
    };
    let directories = directories.iter().enumerate().map(open).collect::<Result<Vec<_>, _>>()?;
    if let Some(sentence) = needs::small_budget(&cells, args.budget.as_secs_f64()) {
        eprintln_lossy!("weir: {sentence}");
    }
    let mut progress = TerminalProgress::new(args.output.is_quiet());
    let mut measurement = run::run(cells, &directories, &args.settings(), &stop, &mut progress);
    progress.finish();
    let error = measurement.error.take();
    let document = document(&measurement, &directories, &published, started);
    let closed: Vec<_> = directories.into_iter().map(BenchDirectory::close).collect();
    let has_figures = document.rows.iter().any(|row| row.elapsed_s.is_some());
    let is_written = has_figures || error.is_none();
    let written = if is_written { write_results(&args.export, files, &document) } else { Ok(()) };
    let status = status_after(written, ExitCode::SUCCESS);
    // An error of the measurement comes before an error of the clean-up, which it may have caused.
    match error.map_or_else(|| closed.into_iter().find_map(Result::err), Some) {
        Some(error) => Err(error),
        None if stop.load(Ordering::Relaxed) => {
            let rounds = counted(document.rounds.len() as u64, "round");
            eprintln_lossy!("weir: stopped; the figures are those of {rounds}");
            Ok(if status == ExitCode::SUCCESS { ExitCode::from(INTERRUPTED) } else { status })
        }
        None => Ok(status),
    }
}

/// Prints the screen and writes the files: each also if another fails. Returns all errors as one.
fn write_results(
    exported: &ExportOptions,
    mut files: OutputFiles,
    document: &BenchDocument,
) -> Result<(), String> {
    let exported = exported.format().map(|format| weir_report::bench::export(document, format));
    joined([
        files.print(exported, || weir_report::bench::screen(document, &stdout_style())),
        files.write_document(document),
        files.write_csv(|| weir_report::bench::csv(document)),
        files.write_markdown(|| weir_report::bench::markdown(document)),
    ])
}
