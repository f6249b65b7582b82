//! `weir copy`: parses the command line, copies, prints what was copied and what a power cut can cost.

mod args;
mod document;
mod events;
mod monitor;
mod option_order;
mod options;
mod reporter;
mod source_size;
mod unfinished_tree;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use signal_hook::consts::SIGPIPE;
use weir_bench::settings::environment;
use weir_copier::{CopyControl, CopyDestination, CopyOptions, copy};

pub use args::Args;

use crate::exit_status::FAILED;
use crate::output::{OutputFiles, own_command};
use events::EventLog;
use monitor::{Monitor, StopSignals};
use reporter::TerminalReporter;
use unfinished_tree::TreeCopy;

/// The operands, options, files and handlers of a copy.
struct PreparedCopy {
    options: CopyOptions,
    sources: Vec<PathBuf>,
    destination: CopyDestination,
    files: OutputFiles,
    events: EventLog,
    tree: Option<TreeCopy>,
    control: Arc<CopyControl>,
    signals: StopSignals,
}

/// Runs `weir copy` and returns the exit status.
pub fn run(args: &Args) -> ExitCode {
    match prepare(args) {
        Ok(prepared) => run_prepared(args, prepared),
        Err(error) => {
            eprintln_lossy!("weir copy: {error}");
            ExitCode::from(FAILED) // as cp
        }
    }
}

fn prepare(args: &Args) -> Result<PreparedCopy, String> {
    let options = options::copy_options(args)?;
    let (sources, destination) = operands(args)?;
    let (files, events) = (args.output.open()?, EventLog::open(args.events.as_deref())?);
    if args.how.nice_io {
        weir_sys::io_priority::be_idle()
            .map_err(|error| format!("--nice-io: ioprio_set: {}", weir_sys::errno_text(&error)))?;
    }
    if args.cp.context.is_some() {
        eprintln_lossy!(
            "weir copy: warning: ignoring --context; weir sets no SELinux context, see --preserve=context"
        );
    }
    let tree = TreeCopy::of(&options, &sources, &destination);
    if let Some(refusal) = tree.as_ref().and_then(TreeCopy::refusal) {
        return Err(refusal);
    }
    let control = Arc::new(CopyControl::new(options.limit));
    let signals = StopSignals::install(&control)?;
    Ok(PreparedCopy { options, sources, destination, files, events, tree, control, signals })
}

/// Copies, reports, and returns the exit status.
fn run_prepared(args: &Args, prepared: PreparedCopy) -> ExitCode {
    let PreparedCopy { options, sources, destination, mut files, events, tree, control, signals } = prepared;
    let events = Arc::new(events);
    let quiet = args.output.is_quiet();
    let monitor = Monitor::start(&control, &signals, &events, &sources, &options, quiet);
    let reporter = TerminalReporter::new(&events, monitor.bar(), args);
    if let Some(warning) = tree.as_ref().and_then(TreeCopy::begin) {
        eprintln_lossy!("weir copy: warning: {warning}");
    }
    let summary = copy(&options, &sources, &destination, &control, &reporter);
    monitor.finish();
    let mut document = document::of(&summary, &options, &destination, control.is_stopping());
    if files.wants_document() {
        document.command = own_command();
        document.environment = environment(&document::directory_of(&destination));
    }
    events.end(&document);
    let mut failed = summary.tally.errors > 0;
    if args.summary || monitor::shows_summary(&summary, quiet) {
        eprint_lossy(&weir_report::copy::summary(&document));
    }
    if let Some(command) = tree.and_then(|tree| tree.end(!failed && !control.is_stopping())) {
        eprintln_lossy!("weir copy: this continues the tree: {command}");
    }
    for error in
        [files.write_document(&document).err(), events.failure(), reporter.failure()].into_iter().flatten()
    {
        eprintln_lossy!("weir copy: {error}");
        failed = true;
    }
    signals.end_if_stopped();
    if summary.tally.reader_left {
        // As cat(1): the reader of the output has closed the pipe, so SIGPIPE ends weir.
        crate::signals::end_by(SIGPIPE);
    }
    if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
}

/// Returns the sources and where they go.
fn operands(args: &Args) -> Result<(Vec<PathBuf>, CopyDestination), String> {
    refuse_empty_names(args)?;
    let mut sources = args.operands.clone();
    if args.cp.no_target_directory && args.cp.target_directory.is_some() {
        return Err("--target-directory and --no-target-directory exclude each other".into());
    }
    if let Some(directory) = &args.cp.target_directory {
        return match sources.is_empty() {
            true => Err("missing file operand: name at least one source".into()),
            false => Ok((sources, CopyDestination::Directory(directory.clone()))),
        };
    }
    let Some(last) = sources.pop() else {
        return Err("missing file operand: weir copy SOURCE… DEST".into());
    };
    if sources.is_empty() {
        return Err(format!(
            "missing destination file operand after {}",
            weir_copier::quote(last.as_os_str().as_encoded_bytes())
        ));
    }
    if args.cp.no_target_directory {
        return match sources.len() {
            1 => Ok((sources, CopyDestination::Exact(last))),
            _ => Err("extra operand: -T takes one source and one target".into()),
        };
    }
    Ok((sources, CopyDestination::Guess(last)))
}

/// Fails if a source or the target is an empty name, as an unset variable of the shell gives it.
fn refuse_empty_names(args: &Args) -> Result<(), String> {
    let target = args.cp.target_directory.as_ref();
    let is_empty = |path: &PathBuf| path.as_os_str().is_empty();
    let found = match args.operands.iter().position(is_empty) {
        Some(at) if target.is_none() && at > 0 && at + 1 == args.operands.len() => "the target".to_string(),
        Some(at) => format!("source {}", at + 1),
        None if target.is_some_and(is_empty) => "the directory of --target-directory".to_string(),
        None => return Ok(()),
    };
    Err(format!(
        "{found} is an empty name: name a file or a directory; in a script, is a variable of the shell unset?"
    ))
}

/// Prints text to standard error and ignores write errors.
fn eprint_lossy(text: &str) {
    use std::io::Write as _;
    let _written = std::io::stderr().write_all(text.as_bytes());
}
