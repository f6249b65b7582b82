//! `weir log`: parses the command line, collects records, prints what a crash can cost and what was collected.

mod check;
mod options;
mod status;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use weir_collect::{Engine, Flush, Framing, Overflow, Oversize, SyncPolicy, loss_sentence};
use weir_model::{Size, duration};
use weir_sys::file_system::is_terminal;

use crate::exit_status::{self, FAILED, USAGE};
use crate::output::OutputOptions;
use crate::values::{parse_nonzero_duration, parse_nonzero_size};

/// Collect records from many sources into one log, every record whole
///
/// weir reads standard input, sockets, FIFOs, files that grow, commands and sensors, divides what they send into records,
/// and writes whole records to one file. Records of different sources are never mixed. It says what a kill or a power cut
/// can cost; --flush and --sync choose that.
///
/// While the log cannot be written (a full disk), weir reads no more: the senders wait, and nothing is lost. SIGHUP opens
/// the log anew if it was renamed (logrotate), else it rotates. SIGTERM and Ctrl-C write what was sent and end.
///
/// TCP and UDP have no encryption and no password; without an address they listen on the loopback interface only.
#[derive(clap::Args)]
#[command(
    override_usage = "weir log -o FILE [OPTIONS] [-- COMMAND [ARG]...]\n       weir log status FILE\n       weir log check FILE [OPTIONS]",
    after_help = EXAMPLES,
    after_long_help = EXAMPLES,
    args_conflicts_with_subcommands = true
)]
#[command(mut_arg("json", |arg| arg.help("At the end, write the counts as JSON (schema weir-log/1); - is standard output")))]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,

    /// The log; - is standard output. An existing file is continued
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    log: Option<PathBuf>,

    #[command(flatten, next_help_heading = "Sources")]
    sources: SourceOptions,

    #[command(flatten, next_help_heading = "Records")]
    records: RecordOptions,

    #[command(flatten, next_help_heading = "Writing")]
    writing: WriteOptions,

    #[command(flatten, next_help_heading = "Rotation")]
    rotation: RotationOptions,

    #[command(flatten)]
    output: OutputOptions,

    /// A command whose standard output and standard error are collected. Its status becomes the status of weir; of several commands, that of the first one that failed
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<std::ffi::OsString>,
}

#[derive(clap::Subcommand)]
enum Action {
    Status(status::Args),
    Check(check::Args),
}

/// Where records come from.
#[derive(clap::Args)]
struct SourceOptions {
    /// Collect standard input; the default if no other source is given
    #[arg(long)]
    stdin: bool,

    /// Listen on unix:PATH, unix-dgram:PATH, unix-seqpacket:PATH, tcp:[HOST:]PORT, udp:[HOST:]PORT, syslog:PATH (such as
    /// /dev/log), syslog-stream:PATH or syslog-udp:[HOST:]PORT, or read fifo:PATH
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<String>,

    /// Follow a file that grows, also when it is rotated or truncated; the last part may be a pattern
    #[arg(long, value_name = "FILE|PATTERN", value_parser = options::parse_text)]
    follow: Vec<String>,

    /// Where positions in followed files are kept [default: FILE.state.json]
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// Read this file at each interval of --every, such as a sensor's
    #[arg(long, value_name = "FILE", requires = "every")]
    read: Vec<PathBuf>,

    /// Run this shell command at each interval of --every
    #[arg(long, value_name = "COMMAND", requires = "every", value_parser = options::parse_text)]
    exec: Vec<String>,

    /// Log each change of a GPIO line as 1 or 0: CHIP:LINE, and behind commas pull-up, pull-down, no-pull, rising, falling,
    /// active-low, debounce=TIME; or poll=TIME, which sees only changes that last so long
    #[arg(long, value_name = "CHIP:LINE")]
    gpio: Vec<weir_collect::GpioSpec>,

    /// Run this shell command and collect its outputs, beside the command behind --; several are possible
    #[arg(long, value_name = "COMMAND", value_parser = options::parse_text)]
    run: Vec<String>,

    /// The interval of --read and --exec
    #[arg(long, value_name = "TIME", value_parser = parse_nonzero_duration)]
    every: Option<Duration>,

    /// The name of the command's records
    #[arg(long, value_name = "NAME", requires = "command")]
    name: Option<String>,

    /// The most connections at a time
    #[arg(long, value_name = "NUMBER", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: u32,

    /// The permissions of new sockets and FIFOs, in octal
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = options::parse_mode)]
    socket_mode: u32,

    /// Write the unfinished record of a source that sends nothing for so long
    #[arg(long, value_name = "TIME", value_parser = parse_nonzero_duration)]
    idle: Option<Duration>,

    /// How long the end may take, to read and write what was sent
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration::parse)]
    drain: Duration,
}

/// The options of records and of their form in the log.
#[derive(clap::Args)]
struct RecordOptions {
    /// How records end: newline, nul, delim:BYTE, len:BYTES, or prefix:u8|u16|u32 (a length, big-endian)
    #[arg(long, value_name = "FORM", default_value = "newline")]
    record: Framing,

    /// A line that matches begins a record; the lines after it belong to it
    #[arg(long, value_name = "REGEX", value_parser = options::parse_regex)]
    multiline: Option<regex::bytes::Regex>,

    /// The longest record
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = parse_nonzero_size)]
    max_record: Size,

    /// The treatment of a longer record: split, cut or refuse
    #[arg(long, value_name = "WORD", default_value = "split", value_parser = options::parse_oversize)]
    oversize: Oversize,

    /// The form of the log: raw (the bytes as they came), text, csv or json
    #[arg(long, value_name = "FORM", value_parser = options::parse_format)]
    format: Option<weir_collect::Format>,

    /// Put the time before each record: iso, iso-ms, epoch, tai64n or mono
    #[arg(long, value_name = "FORM", value_parser = options::parse_stamp)]
    stamp: Option<weir_collect::Stamp>,

    /// Put the source before each record
    #[arg(long)]
    tag: bool,

    /// Put a number before each record, from 1 in each source, so that a gap shows
    #[arg(long)]
    sequence: bool,

    /// Say in the log which records are unfinished, split, cut or refused
    #[arg(long)]
    mark: bool,
}

/// When records are written, and what happens if they cannot.
#[derive(clap::Args)]
struct WriteOptions {
    /// When records are written: none (each with its own call), line (at once), full (a full buffer), or a time such as 200ms
    #[arg(long, value_name = "WHEN", default_value = "line", value_parser = options::parse_flush)]
    flush: Flush,

    /// Write and sync the log only as often as this allows, such as 10MB/h, to spare an SD card; records wait for it
    #[arg(long, value_name = "SIZE/TIME", conflicts_with_all = ["flush", "sync", "ack"])]
    write_budget: Option<weir_collect::WriteBudget>,

    /// When the log is synced: none, interval:TIME, bytes:SIZE, or record
    #[arg(long, value_name = "WHEN", default_value = "none", value_parser = options::parse_sync)]
    sync: SyncPolicy,

    /// After each sync, send each connection the number of its records that are durable, and a newline
    #[arg(long)]
    ack: bool,

    /// The buffer of the log
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = options::parse_buffer)]
    buffer: Size,

    /// If the log cannot be written and the memory is full: block, spill (to a file), drop-oldest or drop-newest
    #[arg(long, value_name = "WORD", default_value = "block", value_parser = options::parse_overflow)]
    overflow: Overflow,

    /// The memory of each source for that
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = parse_nonzero_size)]
    memory: Size,

    /// The directory for the files of --overflow spill: not on the file system of the log
    #[arg(long, value_name = "DIRECTORY", default_value = "/var/tmp")]
    spill: PathBuf,

    /// The most bytes of a source in such a file; a source with more waits
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_nonzero_size)]
    spill_limit: Size,

    /// Write metrics for Prometheus to FILE every 15 seconds, or answer HTTP on http:[HOST:]PORT; both are possible
    #[arg(long, value_name = "FILE|ADDRESS")]
    metrics: Vec<weir_collect::MetricsTarget>,

    /// A torn record at the end of an existing log: keep (a delimiter ends it) or cut (it moves to FILE.torn)
    #[arg(long, value_name = "WORD", value_parser = options::parse_torn)]
    torn: Option<weir_collect::TornTail>,
}

/// When the log is rotated.
#[derive(clap::Args)]
struct RotationOptions {
    /// Begin a new file before the log is larger than this. The old one is FILE.TIME.safe when it is synced
    #[arg(long, value_name = "SIZE", value_parser = parse_nonzero_size)]
    rotate: Option<Size>,

    /// Begin a new file when the log is this old
    #[arg(long, value_name = "TIME", value_parser = parse_nonzero_duration)]
    rotate_every: Option<Duration>,

    /// Compress finished files: zstd or gzip
    #[arg(long, value_name = "FORM", value_parser = options::parse_compression)]
    compress: Option<weir_collect::Compression>,

    /// Keep so many finished files; without --keep and --keep-bytes all
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,

    /// Keep so many bytes of finished files
    #[arg(long, value_name = "SIZE", value_parser = parse_nonzero_size)]
    keep_bytes: Option<Size>,
}

const EXAMPLES: &str = "\
Examples:
  weir log -o all.log --listen unix:log.sock      many programs, one log
  weir log -o web.log --stamp iso-ms -- ./server  both outputs of a command
  ./program | weir log -o log --rotate 10MB --keep 5 --compress zstd
  weir log -o all.log --follow '/var/log/app/*.log' --tag
  weir log -o t.csv --format csv --stamp iso --every 5s \\
      --read /sys/class/hwmon/hwmon0/temp1_input  a sensor
  weir log -o log --listen unix:s --sync record --ack
                                                  durable, acknowledged records
  weir log status all.log                         what the collector does
  weir log check all.log --record len:9999 --uniform

Exit status:
  0  success; with a command, its status
  1  the log could not be written, records were refused (--oversize), or a
     command did not end within --drain
  2  wrong usage, or the file of --json cannot be created
  126, 127
     the command cannot be executed, or does not exist";

/// Runs `weir log` and returns the exit status.
pub fn run(args: &Args) -> ExitCode {
    match &args.action {
        Some(Action::Status(args)) => return status::run(args),
        Some(Action::Check(args)) => return check::run(args),
        None => {}
    }
    let prepared = options::collect_options(args).and_then(|options| Ok((options, args.output.open()?)));
    let (options, mut files) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            eprintln_lossy!("weir: {error}");
            return ExitCode::from(USAGE);
        }
    };
    let quiet = args.output.is_quiet();
    let log = options.output.clone();
    let sentence = loss_sentence(&options);
    let engine = match Engine::open(options) {
        Ok(engine) => engine,
        Err(error) => {
            eprintln_lossy!("weir: {error}");
            return ExitCode::from(error.start_failure().map_or(FAILED, exit_status::of_start_failure));
        }
    };
    if !quiet {
        eprintln_lossy!("weir log: {sentence}");
        if let Some(warning) = options::idle_rotation_options(args) {
            eprintln_lossy!("weir log: warning: {warning}");
        }
    }
    let (summary, result) = engine.run(&mut |message| {
        // A notice names weir because it is also a record of the log.
        let message = message.strip_prefix("weir: ").unwrap_or(message);
        // A name with a newline must not begin a line of its own.
        eprintln_lossy!("weir log: {}", weir_model::Untrusted::from(message));
    });
    if !quiet {
        eprintln_lossy!("weir log: {}", weir_report::log::summary_line(&summary.document(log.as_deref())));
    }
    let json = files.write_document(&summary.document(log.as_deref()));
    let errors = [result.err().map(|error| error.to_string()), json.err()];
    let missing = missing_records(&summary.totals);
    let mut failed = false;
    for error in errors.into_iter().flatten().chain(missing) {
        eprintln_lossy!("weir: {error}");
        failed = true;
    }
    match (summary.command_status, failed) {
        (Some(status), _) if status != 0 => ExitCode::from(u8::try_from(status).unwrap_or(FAILED)),
        (_, true) => ExitCode::from(FAILED),
        _ => ExitCode::SUCCESS,
    }
}

/// Returns a sentence if records are missing because they were refused. Records that `--overflow` drops do not count: the user
/// has chosen to drop them.
fn missing_records(totals: &weir_model::log::LogCounts) -> Option<String> {
    let refused = totals.refused;
    (refused > 0).then(|| {
        format!(
            "records are missing in the log: {refused} refused because they are longer than --max-record, or do not fit --record"
        )
    })
}

/// Returns whether standard input was given and is no terminal, so that it can be the only source.
fn stdin_is_given() -> bool {
    !is_terminal(std::io::stdin())
}

/// Returns the path that keeps the positions in followed files.
fn state_path(log: &Path) -> PathBuf {
    let mut path = log.as_os_str().to_owned();
    path.push(".state.json");
    PathBuf::from(path)
}
