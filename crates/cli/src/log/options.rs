//! The values of the options of `weir log`, and what they mean together.

use std::path::{Path, PathBuf};

use weir_collect::{
    Compression, Fields, Flush, Format, Framing, LogOptions, MetricsTarget, Overflow, Oversize, Retention,
    RotationPolicy, SourceSpec, SpillOptions, Stamp, SyncPolicy, TornTail,
};
use weir_model::Size;

use super::{Args, state_path, stdin_is_given};
use crate::values::{parse_nonzero_duration, parse_nonzero_size};

/// The largest buffer of a stream of libweir.
const MAX_BUFFER: u64 = 1 << 30;

/// Parses a file, a pattern or a command. Fails for an empty text.
pub fn parse_text(text: &str) -> Result<String, String> {
    match text.trim().is_empty() {
        true => Err("the value is empty".into()),
        false => Ok(text.into()),
    }
}

/// Parses permissions in octal.
pub fn parse_mode(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err(format!("'{text}' are no permissions: use three octal digits, such as 660")),
    }
}

/// Parses a regular expression for bytes.
pub fn parse_regex(text: &str) -> Result<regex::bytes::Regex, String> {
    regex::bytes::Regex::new(text).map_err(|error| error.to_string())
}

/// Parses what happens to records that are too long.
pub fn parse_oversize(text: &str) -> Result<Oversize, String> {
    word(text, &[("split", Oversize::Split), ("cut", Oversize::Cut), ("refuse", Oversize::Refuse)])
}

/// Parses the form of the log.
pub fn parse_format(text: &str) -> Result<Format, String> {
    text.parse()
}

/// Parses the form of time stamps.
pub fn parse_stamp(text: &str) -> Result<Stamp, String> {
    text.parse()
}

/// Parses when records are written.
pub fn parse_flush(text: &str) -> Result<Flush, String> {
    match text {
        "none" => Ok(Flush::None),
        "line" => Ok(Flush::Line),
        "full" => Ok(Flush::Full),
        _ => parse_nonzero_duration(text)
            .map(Flush::Within)
            .map_err(|error| format!("{error}; or use none, line or full")),
    }
}

/// Parses when the log is synced.
pub fn parse_sync(text: &str) -> Result<SyncPolicy, String> {
    match text.split_once(':').unwrap_or((text, "")) {
        ("none", "") => Ok(SyncPolicy::None),
        ("record", "") => Ok(SyncPolicy::Record),
        ("interval", time) => parse_nonzero_duration(time).map(SyncPolicy::Interval),
        ("bytes", size) => parse_nonzero_size(size).map(|size| SyncPolicy::Bytes(size.0)),
        _ => Err(format!("'{text}': use none, interval:1s, bytes:1M or record")),
    }
}

/// Parses the size of the log's buffer.
pub fn parse_buffer(text: &str) -> Result<Size, String> {
    match parse_nonzero_size(text)? {
        Size(bytes) if bytes > MAX_BUFFER => {
            Err(format!("{}: use at most {}", Size(bytes), Size(MAX_BUFFER)))
        }
        size => Ok(size),
    }
}

/// Parses what happens when the memory is full.
pub fn parse_overflow(text: &str) -> Result<Overflow, String> {
    let words = [
        ("block", Overflow::Block),
        ("spill", Overflow::Spill),
        ("drop-oldest", Overflow::DropOldest),
        ("drop-newest", Overflow::DropNewest),
    ];
    word(text, &words)
}

/// Parses what happens to a torn record.
pub fn parse_torn(text: &str) -> Result<TornTail, String> {
    word(text, &[("keep", TornTail::Keep), ("cut", TornTail::Cut)])
}

/// Parses the compression of finished files.
pub fn parse_compression(text: &str) -> Result<Compression, String> {
    word(text, &[("none", Compression::None), ("zstd", Compression::Zstd), ("gzip", Compression::Gzip)])
}

fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| format!("'{text}': use one of {}", known()))
}

/// Returns the options of the collector. Fails if two options exclude each other.
pub fn collect_options(args: &Args) -> Result<LogOptions, String> {
    let log = args.log.clone().ok_or("name the log: -o FILE, or -o - for standard output")?;
    let output = (log.as_os_str() != "-").then_some(log);
    let format = format(args)?;
    let rotation = rotation(args, output.as_deref())?;
    let sources = sources(args)?;
    check_promises(args, output.is_some(), &sources)?;
    if args.records.mark && format == Format::Raw && !matches!(args.records.record, Framing::Delimiter(_)) {
        return Err("--mark needs records with a delimiter, or --format text, csv or json".into());
    }
    Ok(LogOptions {
        sources,
        state: (!args.sources.follow.is_empty())
            .then(|| args.sources.state.clone().or_else(|| output.as_deref().map(state_path)))
            .flatten(),
        framing: args.records.record,
        multiline: multiline(args)?,
        max_record_bytes: usize::try_from(args.records.max_record.0).unwrap_or(usize::MAX),
        oversize: args.records.oversize,
        format,
        fields: Fields {
            stamp: args.records.stamp,
            source: args.records.tag,
            sequence: args.records.sequence,
            mark: args.records.mark,
        },
        flush: args.writing.write_budget.map_or(args.writing.flush, Flush::Budget),
        sync: args.writing.sync,
        buffer_bytes: usize::try_from(args.writing.buffer.0).unwrap_or(usize::MAX),
        rotation,
        torn: args.writing.torn.unwrap_or(if matches!(format, Format::Csv | Format::Json) {
            TornTail::Cut
        } else {
            TornTail::Keep
        }),
        ack: args.writing.ack,
        overflow: args.writing.overflow,
        memory_bytes: usize::try_from(args.writing.memory.0).unwrap_or(usize::MAX),
        spill: SpillOptions {
            directory: args.writing.spill.clone(),
            limit: args.writing.spill_limit.0,
            log: output.as_deref().and_then(absolute),
        },
        metrics: metrics(args)?,
        max_connections: args.sources.max_connections as usize,
        idle: args.sources.idle,
        socket_mode: args.sources.socket_mode,
        drain: args.sources.drain,
        output,
    })
}

/// Refuses promises that the output or the sources cannot keep.
fn check_promises(args: &Args, has_file: bool, sources: &[SourceSpec]) -> Result<(), String> {
    if !has_file && args.writing.sync != SyncPolicy::None {
        return Err("--sync needs a file: standard output cannot be synced".into());
    }
    if !has_file && args.writing.write_budget.is_some() {
        return Err("--write-budget needs a file: standard output has no device to spare".into());
    }
    if args.writing.ack && args.writing.sync == SyncPolicy::None {
        return Err(
            "--ack needs --sync: it acknowledges durable records; add --sync record or --sync interval:1s"
                .into(),
        );
    }
    if args.writing.ack && !sources.iter().any(SourceSpec::is_acknowledged) {
        return Err(
            "--ack needs a source with connections: add --listen unix:PATH, unix-seqpacket:PATH or tcp:[HOST:]PORT"
                .into(),
        );
    }
    Ok(())
}

/// Returns the absolute path of the log, through the links of its directory.
fn absolute(log: &Path) -> Option<PathBuf> {
    let parent = log.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(parent.canonicalize().ok()?.join(log.file_name()?))
}

/// Returns the form of the log. Without --format it is text if records have a stamp, a source or a number, or come from syslog;
/// else raw.
fn format(args: &Args) -> Result<Format, String> {
    let records = &args.records;
    let has_fields = records.stamp.is_some() || records.tag || records.sequence;
    match records.format {
        Some(Format::Raw) if has_fields => {
            Err("--format raw has no place for --stamp, --tag and --sequence: use text, csv or json".into())
        }
        Some(format) => Ok(format),
        None if args.sources.listen.iter().any(|address| address.starts_with("syslog")) => Ok(Format::Text),
        None if has_fields => Ok(Format::Text),
        None => Ok(Format::Raw),
    }
}

/// Returns the targets of the metrics. Fails for more than one file or more than one address.
fn metrics(args: &Args) -> Result<Vec<MetricsTarget>, String> {
    let targets = &args.writing.metrics;
    let files = targets.iter().filter(|target| matches!(target, MetricsTarget::File(_))).count();
    if files > 1 || targets.len() - files > 1 {
        return Err("--metrics: use one file and one address at most".into());
    }
    Ok(targets.clone())
}

fn multiline(args: &Args) -> Result<Option<regex::bytes::Regex>, String> {
    match (&args.records.multiline, args.records.record) {
        (Some(_), Framing::Length(_) | Framing::Prefix(_)) => {
            Err("--multiline joins lines: use it with --record newline, nul or delim".into())
        }
        (pattern, _) => Ok(pattern.clone()),
    }
}

fn rotation(args: &Args, output: Option<&Path>) -> Result<RotationPolicy, String> {
    let rotation = &args.rotation;
    let policy = RotationPolicy {
        bytes: rotation.rotate.map(|size| size.0),
        interval: rotation.rotate_every,
        compression: rotation.compress.unwrap_or_default(),
        retention: Retention {
            files: rotation.keep.map(|number| number as usize),
            bytes: rotation.keep_bytes.map(|size| size.0),
        },
    };
    let rotates = policy.bytes.is_some() || policy.interval.is_some();
    let finishes = finishing_options(args);
    if output.is_none()
        && let Some(option) = rotates.then_some("--rotate").or(finishes.first().copied())
    {
        return Err(format!("{option} needs a file: standard output cannot be rotated"));
    }
    Ok(policy)
}

/// Returns the given options about finished files.
fn finishing_options(args: &Args) -> Vec<&'static str> {
    let rotation = &args.rotation;
    let given = [
        (rotation.compress.is_some_and(|form| form != Compression::None), "--compress"),
        (rotation.keep.is_some(), "--keep"),
        (rotation.keep_bytes.is_some(), "--keep-bytes"),
    ];
    given.into_iter().filter(|(is_given, _)| *is_given).map(|(_, option)| option).collect()
}

/// Returns a sentence if options are about finished files and no option finishes a file: only SIGHUP does then.
pub fn idle_rotation_options(args: &Args) -> Option<String> {
    let rotates = args.rotation.rotate.is_some() || args.rotation.rotate_every.is_some();
    let options = finishing_options(args);
    (!rotates && !options.is_empty()).then(|| {
        format!(
            "{} without --rotate and --rotate-every: the log is rotated at SIGHUP only; add --rotate SIZE or --rotate-every TIME",
            options.join(" and ")
        )
    })
}

fn sources(args: &Args) -> Result<Vec<SourceSpec>, String> {
    let given = &args.sources;
    let mut sources = Vec::new();
    if given.stdin {
        sources.push(SourceSpec::Stdin);
    }
    for address in &given.listen {
        sources.push(address.parse()?);
    }
    sources.extend(given.follow.iter().map(|pattern| SourceSpec::Follow(pattern.clone())));
    sources.extend(given.gpio.iter().cloned().map(SourceSpec::Gpio));
    if let Some(every) = given.every {
        if given.read.is_empty() && given.exec.is_empty() {
            return Err("--every needs --read FILE or --exec COMMAND".into());
        }
        sources.extend(given.read.iter().map(|path| SourceSpec::ReadEvery(path.clone(), every)));
        sources.extend(given.exec.iter().map(|command| SourceSpec::RunEvery(command.clone(), every)));
    }
    if let Some(program) = args.command.first() {
        let own = PathBuf::from(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = given.name.clone().unwrap_or(own);
        sources.push(SourceSpec::Command { arguments: args.command.clone(), name });
    }
    for (number, command) in given.run.iter().enumerate() {
        let program = command.split_whitespace().next().unwrap_or("sh");
        let own = PathBuf::from(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let arguments = ["/bin/sh", "-c", command].map(std::ffi::OsString::from).to_vec();
        // Two commands of one program keep names of their own.
        let is_taken =
            given.run[..number].iter().any(|before| before.split_whitespace().next() == Some(program));
        let name = if is_taken { format!("{own}.{}", number + 1) } else { own };
        sources.push(SourceSpec::Command { arguments, name });
    }
    if sources.is_empty() {
        if !stdin_is_given() {
            return Err("no source: give --listen, --follow, --every, --gpio, --run, a command behind --, or --stdin for this terminal".into());
        }
        sources.push(SourceSpec::Stdin);
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn words_and_times_are_parsed() {
        assert_eq!(parse_flush("line"), Ok(Flush::Line));
        assert_eq!(parse_flush("200ms"), Ok(Flush::Within(Duration::from_millis(200))));
        assert_eq!(parse_sync("interval:1s"), Ok(SyncPolicy::Interval(Duration::from_secs(1))));
        assert_eq!(parse_sync("bytes:1M"), Ok(SyncPolicy::Bytes(1 << 20)));
        assert_eq!(parse_mode("660"), Ok(0o660));
        assert_eq!(parse_overflow("drop-oldest"), Ok(Overflow::DropOldest));
        for wrong in ["", "lines", "-1s", "0"] {
            assert!(parse_flush(wrong).is_err() && parse_sync(wrong).is_err(), "{wrong}");
        }
        assert!(parse_mode("999").is_err() && parse_mode("7777").is_err() && parse_torn("maybe").is_err());
    }
}
