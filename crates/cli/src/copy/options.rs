//! The values of the options of `weir copy`, and what they mean together.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use weir_copier::{
    BackupNames, CopyMethod, CopyOptions, CopySync, Existing, FollowLinks, HoleSearch, Preserved, TargetKind,
    Tristate,
};
use weir_model::Size;

use super::Args;

/// The largest buffer of a thread.
const MAX_BUFFER: u64 = 1 << 30;

/// Returns the value of one of several words.
pub fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == text);
    let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    found.map(|(_, value)| *value).ok_or_else(|| format!("'{text}': use one of {}", known()))
}

/// Returns a parser of paths that accepts an empty one: clap calls it a value that was not supplied.
pub fn path_parser() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// Parses the name of a method of moving bytes.
pub fn parse_method(text: &str) -> Result<CopyMethod, String> {
    let words = CopyMethod::ALL.map(|(method, name)| (name, method));
    word(text, &words)
}

/// Parses auto, always or never.
pub fn parse_tristate(text: &str) -> Result<Tristate, String> {
    word(text, &[("auto", Tristate::Auto), ("always", Tristate::Always), ("never", Tristate::Never)])
}

/// Parses how holes are found.
pub fn parse_holes(text: &str) -> Result<HoleSearch, String> {
    word(text, &[("seek", HoleSearch::Seek), ("scan", HoleSearch::Scan)])
}

/// Parses when a copy is durable.
pub fn parse_sync(text: &str) -> Result<CopySync, String> {
    word(text, &[("none", CopySync::None), ("data", CopySync::Data), ("full", CopySync::Full)])
}

/// Parses what happens to pages; true for drop.
pub fn parse_cache(text: &str) -> Result<bool, String> {
    word(text, &[("keep", false), ("drop", true)])
}

/// Parses the treatment of existing targets.
pub fn parse_update(text: &str) -> Result<Existing, String> {
    let words = [
        ("all", Existing::Overwrite),
        ("none", Existing::Skip),
        ("none-fail", Existing::Fail),
        ("older", Existing::Older),
    ];
    word(text, &words)
}

/// Parses a rate, such as 50MB/s.
pub fn parse_rate(text: &str) -> Result<u64, String> {
    let size = text.strip_suffix("/s").unwrap_or(text);
    crate::values::parse_nonzero_size(size).map(|size| size.0)
}

/// Parses the size of the buffer.
pub fn parse_buffer(text: &str) -> Result<Size, String> {
    match crate::values::parse_nonzero_size(text)? {
        Size(bytes) if bytes > MAX_BUFFER => {
            Err(format!("{}: use at most {}", Size(bytes), Size(MAX_BUFFER)))
        }
        size => Ok(size),
    }
}

/// Parses the names of backups; the words of cp.
pub fn parse_backup(text: &str) -> Result<Option<BackupNames>, String> {
    let words = [
        ("none", None),
        ("off", None),
        ("numbered", Some(BackupNames::Numbered)),
        ("t", Some(BackupNames::Numbered)),
        ("existing", Some(BackupNames::Existing)),
        ("nil", Some(BackupNames::Existing)),
        ("simple", Some(BackupNames::Simple)),
        ("never", Some(BackupNames::Simple)),
    ];
    word(text, &words)
}

/// Parses a list of attributes for `--preserve` and `--no-preserve`.
pub fn parse_attributes(text: &str) -> Result<Preserved, String> {
    let none = Preserved::default();
    let mut sum = none;
    for name in text.split(',') {
        let words = [
            ("mode", Preserved { mode: true, ..none }),
            ("ownership", Preserved { owner: true, ..none }),
            ("timestamps", Preserved { times: true, ..none }),
            ("links", Preserved { links: true, ..none }),
            ("xattr", Preserved { xattr: true, xattr_required: true, ..none }),
            ("context", Preserved { context: true, ..none }),
            ("all", Preserved::ALL),
        ];
        sum = joined(sum, word(name, &words)?);
    }
    Ok(sum)
}

pub(super) fn joined(left: Preserved, right: Preserved) -> Preserved {
    Preserved {
        mode: left.mode || right.mode,
        default_mode: left.default_mode && !right.mode,
        owner: left.owner || right.owner,
        times: left.times || right.times,
        links: left.links || right.links,
        xattr: left.xattr || right.xattr,
        xattr_required: left.xattr_required || right.xattr_required,
        context: left.context || right.context,
    }
}

pub(super) fn without(left: Preserved, right: Preserved) -> Preserved {
    Preserved {
        mode: left.mode && !right.mode,
        default_mode: left.default_mode || right.mode,
        owner: left.owner && !right.owner,
        times: left.times && !right.times,
        links: left.links && !right.links,
        xattr: left.xattr && !right.xattr,
        xattr_required: left.xattr_required && !right.xattr,
        context: left.context && !right.context,
    }
}

/// Returns the options of the copy. Fails if two options exclude each other.
pub fn copy_options(args: &Args) -> Result<CopyOptions, String> {
    let recursive = args.cp.recursive || args.cp.archive;
    let kind = match (args.cp.link, args.cp.symbolic_link, args.cp.attributes_only) {
        (true, true, _) => return Err("cannot make both hard and symbolic links".into()),
        (true, ..) => TargetKind::HardLink,
        (_, true, _) => TargetKind::SymbolicLink,
        (.., true) => TargetKind::Attributes,
        _ => TargetKind::Copy,
    };
    check_reflink(args)?;
    let existing = existing(args);
    let backup = backup(args)?;
    if backup.is_some() && existing == Existing::Skip {
        return Err("--backup and --no-clobber exclude each other".into());
    }
    Ok(CopyOptions {
        method: args.how.method,
        buffer_bytes: args.how.buffer.map(|size| size.0 as usize),
        reflink: args.how.reflink.unwrap_or_default(),
        sparse: args.how.sparse.unwrap_or_default(),
        holes: args.how.holes,
        recursive,
        copy_contents: args.cp.copy_contents,
        follow: follow(args, recursive, kind),
        preserved: preserved(args),
        existing,
        interactive: args.cp.interactive,
        force: args.cp.force,
        remove_destination: args.cp.remove_destination,
        backup,
        backup_suffix: suffix(args),
        kind,
        one_file_system: args.cp.one_file_system,
        parents: args.cp.parents,
        strip_trailing_slashes: args.cp.strip_trailing_slashes,
        keep_directory_symlink: args.cp.keep_directory_symlink,
        devices: args.how.device,
        sync: args.durable.sync,
        atomic: args.durable.atomic || args.durable.resume,
        resume: args.durable.resume,
        verify: args.durable.verify,
        drop_cache: args.how.cache,
        limit: args.how.limit,
        threads: args.how.threads.unwrap_or(0),
        verbose: args.cp.verbose,
    })
}

/// Fails if `--reflink=always` meets an option that copies bytes.
fn check_reflink(args: &Args) -> Result<(), String> {
    if args.how.reflink != Some(Tristate::Always) {
        return Ok(());
    }
    if args.how.sparse.is_some_and(|sparse| sparse != Tristate::Auto) {
        return Err("--reflink=always shares the blocks as they are: use it only with --sparse=auto".into());
    }
    let copies = [
        (!matches!(args.how.method, CopyMethod::Auto | CopyMethod::Reflink), "--method"),
        (args.how.holes == HoleSearch::Scan, "--holes=scan"),
        (args.how.cache, "--cache=drop"),
        (args.durable.resume, "--resume"),
    ];
    match copies.iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => Err(format!(
            "--reflink=always moves no bytes, but {option} is about moving them: leave one of the two out"
        )),
        None => Ok(()),
    }
}

fn existing(args: &Args) -> Existing {
    match (args.cp.no_clobber, args.cp.update_older, args.cp.update) {
        (true, ..) => Existing::Skip,
        (_, _, Some(update)) => update,
        (_, true, None) => Existing::Older,
        _ => Existing::Overwrite,
    }
}

/// As cp: of `-a`, `-d`, `-P`, `-H` and `-L` the last one decides; without any, all links are followed unless `-r` is given
/// without `-l`.
fn follow(args: &Args, recursive: bool, kind: TargetKind) -> FollowLinks {
    let keeps_links = recursive && kind != TargetKind::HardLink;
    let by_default = if keeps_links { FollowLinks::Never } else { FollowLinks::Always };
    args.ordered.iter().filter_map(|option| option.follow()).next_back().unwrap_or(by_default)
}

/// As cp: each option adds to what the options before it preserve, or removes from it.
fn preserved(args: &Args) -> Preserved {
    args.ordered.iter().fold(Preserved::default(), |sum, option| option.preserved(sum))
}

fn backup(args: &Args) -> Result<Option<BackupNames>, String> {
    let from_environment = || match std::env::var("VERSION_CONTROL") {
        Ok(value) if !value.is_empty() => {
            parse_backup(&value).map_err(|error| format!("VERSION_CONTROL: {error}"))
        }
        _ => Ok(Some(BackupNames::Existing)),
    };
    match &args.cp.backup {
        Some(Some(names)) => Ok(*names),
        Some(None) => from_environment(),
        None if args.cp.backup_short || args.cp.suffix.is_some() => from_environment(),
        None => Ok(None),
    }
}

/// As cp: a suffix that is empty or has a slash is replaced by `~`.
fn suffix(args: &Args) -> OsString {
    let given = args.cp.suffix.clone().or_else(|| std::env::var_os("SIMPLE_BACKUP_SUFFIX"));
    given
        .filter(|suffix| !suffix.is_empty() && !suffix.as_encoded_bytes().contains(&b'/'))
        .unwrap_or_else(|| "~".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_listed_as_for_cp() {
        let times = parse_attributes("timestamps,mode").expect("a list");
        assert!(times.times && times.mode && !times.owner);
        assert_eq!(parse_attributes("all"), Ok(Preserved::ALL));
        assert!(parse_attributes("colour").is_err());
        assert!(!without(Preserved::ALL, times).mode);
    }

    #[test]
    fn rates_are_sizes_per_second() {
        assert_eq!(parse_rate("50MB/s"), Ok(50_000_000));
        assert_eq!(parse_rate("1M"), Ok(1 << 20));
        assert!(parse_rate("0").is_err() && parse_rate("fast").is_err());
    }
}
