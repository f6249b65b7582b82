//! `weir advise`: parses the command line, asks what is missing, measures the directory, prints the answer.

mod answers;
mod explain;
mod traced;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use weir_advise::code;
use weir_bench::Error;
use weir_bench::advice::{self, CacheUse};
use weir_model::Size;
use weir_model::advise::{
    AdviceDocument, AdviceLanguage, AdvicePrices, AdviceQuestion, AllowedLoss, Medium, WriteMethod,
};
use weir_tui::style::stdout_style;

use crate::console;
use crate::exit_status::{FAILED, INTERRUPTED, USAGE};
use crate::output::OutputOptions;
use crate::progress::TerminalProgress;
use crate::signals::stop_flag;
use crate::values::{parse_nonzero_duration, parse_nonzero_size};

/// Choose how to write, from what calls and syncs cost on this machine
///
/// weir asks what is written and what may be lost, or takes the answers as options. It measures once per file system what
/// a write, a sync and a buffered record cost there (at most about ten seconds, kept in the user's cache). The measurement needs 17 MiB free in
/// the directory; its files are removed. Then it shows the three best
/// ways side by side, each with calls per second, CPU time, added latency, the bytes that a kill and a power cut lose, and
/// a whole program for the first.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
#[command(mut_arg("json", |arg| arg.help("Write the result as JSON (schema weir-advise/1); - is standard output")))]
#[command(mut_arg("quiet", |arg| arg.help("Print only errors: no screen, no progress bar")))]
pub struct Args {
    /// Length of a record, such as a line of the log, with its end [default with -y: 100]
    #[arg(long, value_name = "SIZE", value_parser = parse_record)]
    record_bytes: Option<Size>,

    /// Records per second of all writers together, such as 0.2 or 50000 [default with -y: 10]
    #[arg(long, value_name = "NUMBER", value_parser = parse_rate)]
    rate: Option<f64>,

    /// Loss that a kill or a power cut may cause: none (no record that was accepted), second (the records of the last second),
    /// buffer (a buffer, and at a power cut what the kernel has not written back) [default with -y: buffer]
    #[arg(long, value_name = "LOSS", value_parser = words(AllowedLoss::ALL, AllowedLoss::word))]
    loss: Option<AllowedLoss>,

    /// The longest time until another process can read a record, such as 5ms or 1s [default with -y: 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_nonzero_duration)]
    latency: Option<Duration>,

    /// Threads or processes that write the file at the same time [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    sharers: Option<u32>,

    /// Storage below the file: ssd, hdd, sd, emmc, ram, network, unknown [default: that of DIR]
    #[arg(long, value_name = "MEDIUM", value_parser = words(Medium::ALL, Medium::word))]
    medium: Option<Medium>,

    /// Language of the program: c, cpp, python, rust, go, java, node, shell [default: c]
    #[arg(long, value_name = "LANGUAGE", value_parser = words(AdviceLanguage::ALL, AdviceLanguage::word))]
    lang: Option<AdviceLanguage>,

    /// Directory of the file, on the device that is asked about
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    /// Take the default of each answer that is not given, and ask nothing
    #[arg(long, short)]
    yes: bool,

    /// Begin with what a program does: a file of weir trace --json, or a program that weir traces first
    #[arg(long = "for", value_name = "FILE|PROGRAM")]
    for_program: Option<PathBuf>,

    /// Arguments of the program of --for
    #[arg(value_name = "ARGUMENT", last = true, requires = "for_program")]
    arguments: Vec<OsString>,

    /// Measure the directory again, also if its prices are in the cache
    #[arg(long)]
    recalibrate: bool,

    /// Print only the program of the first choice: c, c-libweir, cpp, python, rust, go, java, node or shell [default: that of
    /// --lang]
    #[arg(long, value_name = "KEY", num_args = 0..=1, default_missing_value = "", conflicts_with = "json", value_parser = PossibleValuesParser::new(code_keys()), hide_possible_values = true)]
    code: Option<String>,

    /// With --code: the program of the best way with this method instead of the first choice: syscall, stdio, libweir, mmap,
    /// direct (O_DIRECT), io-uring or in-kernel (copy_file_range)
    #[arg(long, value_name = "METHOD", requires = "code", value_parser = words(WriteMethod::ALL, WriteMethod::word))]
    method: Option<WriteMethod>,

    /// Explain a term, such as fsync, O_DSYNC or page cache, with its man page
    #[arg(long, value_name = "TERM", conflicts_with_all = ["for_program", "code"])]
    explain: Option<String>,

    #[command(flatten)]
    output: OutputOptions,
}

const EXAMPLES: &str = "\
Examples:
  weir advise                                            ask, then answer
  weir advise --record-bytes 100 --rate 1000000 --loss buffer --latency 1m
  weir advise --record-bytes 200 --rate 50 --loss none --latency 1s
  weir advise -y --rate 0.2 --loss second --medium sd --dir /mnt/card
  weir advise -y --rate 1000 --loss none --code python > log.py
  weir advise -y --code c --method mmap > log.c
  weir advise -y --for trace.json        from a trace of weir trace --json
  weir advise -y --for ./program -- arguments             trace it first
  weir advise --explain O_DSYNC

Without a terminal --record-bytes, --rate, --loss and --latency must be given,
or -y.

Exit status:
  0    success
  1    no way holds all limits, or a failure
  2    wrong usage, or the file of --json cannot be created
  130  stopped by Ctrl-C";

/// Returns a parser of the words of an enum.
fn words<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    word: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(move |one| word(*one)))
        .map(move |text| *all.iter().find(|one| word(**one) == text).expect("the parser knows the words"))
}

fn code_keys() -> Vec<&'static str> {
    let mut keys: Vec<&str> =
        AdviceLanguage::ALL.iter().flat_map(|lang| code::keys(*lang)).copied().collect();
    keys.push("");
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Largest record: a write(2) of more is divided by the kernel.
const MAX_RECORD: u64 = 1 << 30;
/// Highest rate; no loop makes more records.
const MAX_RATE: f64 = 1e10;
/// Lowest rate: a record in 30 years.
const MIN_RATE: f64 = 1e-9;

pub(super) fn parse_record(text: &str) -> Result<Size, String> {
    match parse_nonzero_size(text)? {
        size if size.0 > MAX_RECORD => Err(format!("{text}: a record has 1 byte to 1 GiB")),
        size => Ok(size),
    }
}

pub(super) fn parse_rate(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(rate) if (MIN_RATE..=MAX_RATE).contains(&rate) => Ok(rate),
        Ok(rate) if rate.is_finite() => {
            Err(format!("{text}: use a number of records a second, more than 0 and at most 10000000000"))
        }
        _ => Err(format!("'{text}' is not a number of records a second, such as 0.2 or 50000")),
    }
}

/// The end of `weir advise` without an answer.
enum Halt {
    Usage(String),
    Failed(String),
    Stopped,
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        match error {
            Error::Usage(text) => Self::Usage(text),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// Runs `weir advise` and returns the exit status.
pub fn run(args: &Args) -> ExitCode {
    let done = match &args.explain {
        Some(term) => explain::text(term, &stdout_style())
            .map_err(Halt::Usage)
            .and_then(|text| console::print_screen(&text).map_err(Halt::Failed))
            .map(|()| ExitCode::SUCCESS),
        None => advise(args),
    };
    done.unwrap_or_else(|halt| match halt {
        Halt::Usage(text) => {
            eprintln_lossy!("weir: {text}");
            eprintln_lossy!("weir: try 'weir advise --help'");
            ExitCode::from(USAGE)
        }
        Halt::Failed(text) => {
            eprintln_lossy!("weir: {text}");
            ExitCode::from(FAILED)
        }
        Halt::Stopped => ExitCode::from(INTERRUPTED),
    })
}

fn advise(args: &Args) -> Result<ExitCode, Halt> {
    let mut files = args.output.open().map_err(Halt::Usage)?;
    check_directory(args)?;
    // Before the dialogue, which raises SIGINT for Ctrl-C: the terminal must be restored then.
    let stop = stop_flag().map_err(Halt::Failed)?;
    let host = advice::host(&args.dir);
    let traced = args.for_program.as_ref().map(|program| traced::read(program, args)).transpose()?;
    let question = answers::question(args, &host, traced.as_ref())?;
    let prices = prices(args, &question, &stop)?;
    let document = weir_advise::advise(&question, &host, &prices, traced.map(|traced| traced.program));
    match args.code.as_deref() {
        Some(wanted) => {
            let key = code_key(&document, args.method);
            let wanted = if wanted.is_empty() { key } else { wanted };
            let program = program(&document, wanted, args.method).map_err(Halt::Failed)?;
            console::print_screen(&program).map_err(Halt::Failed)?;
            if args.method.is_some() {
                return Ok(ExitCode::SUCCESS);
            }
        }
        None => files
            .present(
                || weir_report::advise::screen(&document, code_key(&document, None), &stdout_style()),
                &document,
            )
            .map_err(Halt::Failed)?,
    }
    Ok(status(&document))
}

/// Returns the key of the program to show: that of the language, or that of libweir if `method`, or else the first choice, is
/// libweir.
fn code_key(document: &AdviceDocument, method: Option<WriteMethod>) -> &'static str {
    let keys = code::keys(document.question.lang);
    let method = method.or(document.choices.first().map(|first| first.method));
    let is_libweir = method == Some(WriteMethod::Libweir);
    keys.iter().copied().find(|key| key.contains("libweir") == is_libweir).unwrap_or(keys[0])
}

/// Returns the program under a key: of the first choice, or of the best policy with a method. Fails with a sentence if the language
/// cannot use the method.
fn program(document: &AdviceDocument, key: &str, method: Option<WriteMethod>) -> Result<String, String> {
    let Some(method) = method else { return Ok(document.choices[0].code[key].clone()) };
    code::why_absent(key, method).map_or(Ok(()), |why| Err(why.to_string()))?;
    if (method == WriteMethod::Libweir) != (key == "c-libweir") {
        return Err("libweir is a C library: its program is --code c-libweir --method libweir".into());
    }
    weir_advise::best_policy(document, method)
        .and_then(|(policy, broken_limit)| {
            code::programs(&policy, &document.question, broken_limit).remove(key)
        })
        .ok_or_else(|| format!("no way with the method {} was considered", method.word()))
}

fn status(document: &AdviceDocument) -> ExitCode {
    if document.choices.first().is_some_and(|first| first.holds) {
        return ExitCode::SUCCESS;
    }
    eprintln_lossy!(
        "weir: no way holds all limits of the question on this machine: ask for less (the screen, without --code, shows how \
         much it can do), or use another device"
    );
    ExitCode::from(FAILED)
}

fn check_directory(args: &Args) -> Result<(), Halt> {
    match std::fs::metadata(&args.dir) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(Halt::Failed(format!("{}: not a directory; give one with --dir", args.dir.display()))),
        Err(error) => {
            Err(Error::system("stat", &args.dir, &error, "give the directory of the file with --dir").into())
        }
    }
}

fn prices(args: &Args, question: &AdviceQuestion, stop: &AtomicBool) -> Result<AdvicePrices, Halt> {
    let mut progress = TerminalProgress::new(args.output.is_quiet() || args.code.is_some());
    let use_of_cache = match question.loss {
        _ if args.recalibrate => CacheUse::Nothing,
        // The first choice does not sync, and an old price is enough to reject the others.
        AllowedLoss::Buffer => CacheUse::All,
        AllowedLoss::None | AllowedLoss::Second => CacheUse::AllButSyncs,
    };
    let measured = advice::prices(&args.dir, use_of_cache, stop, &mut progress);
    progress.finish();
    match measured {
        Err(_) if stop.load(Ordering::Relaxed) => Err(Halt::Stopped),
        other => other.map_err(Halt::from),
    }
}
