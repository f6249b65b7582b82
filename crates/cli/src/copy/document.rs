//! The JSON document of `weir copy`, and what a power cut would cost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weir_copier::{CopyDestination, CopyOptions, CopySummary, CopySync, CopyTally};
use weir_model::Size;
use weir_model::copy::{CopyDocument, MethodCount, SCHEMA};
use weir_model::number::counted;

/// Returns the document of a copy.
pub fn of(
    summary: &CopySummary,
    options: &CopyOptions,
    destination: &CopyDestination,
    is_stopped: bool,
) -> CopyDocument {
    let tally = &summary.tally;
    let (user_s, system_s) = weir_sys::clock::own_cpu_seconds();
    CopyDocument {
        schema: SCHEMA.into(),
        elapsed_s: summary.elapsed.as_secs_f64(),
        user_s,
        system_s,
        sync_s: tally.sync_time.as_secs_f64(),
        files: tally.files,
        directories: tally.directories,
        symbolic_links: tally.symbolic_links,
        hard_links: tally.hard_links,
        special_files: tally.special_files,
        skipped: tally.skipped,
        copied_bytes: tally.copied_bytes,
        kept_bytes: tally.kept_bytes,
        shared_bytes: tally.shared_bytes,
        hole_bytes: tally.hole_bytes,
        methods: tally
            .methods
            .iter()
            .map(|(method, (files, bytes))| {
                (method.name().into(), MethodCount { files: *files, bytes: *bytes })
            })
            .collect(),
        calls: tally.calls.iter().map(|(name, number)| ((*name).into(), *number)).collect(),
        dropped_attributes: tally.dropped_attributes,
        verified_bytes: tally.verified_bytes,
        sync: sync_name(options).into(),
        synced_files: tally.synced_files,
        cached_bytes: tally.cached_bytes,
        errors: tally.errors,
        power_cut: power_cut(tally, options, destination, is_stopped),
        command: Vec::new(),
        environment: BTreeMap::new(),
    }
}

/// Returns the directory that the copies went to, whose device and file system are the environment of the copy.
pub fn directory_of(destination: &CopyDestination) -> PathBuf {
    let (CopyDestination::Guess(path) | CopyDestination::Directory(path) | CopyDestination::Exact(path)) =
        destination;
    let parent = || path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() { path.clone() } else { parent().into() }
}

/// Returns whether the target loses everything at a power cut. That of standard output is not known.
fn is_volatile(destination: &CopyDestination) -> bool {
    let (CopyDestination::Guess(path) | CopyDestination::Directory(path) | CopyDestination::Exact(path)) =
        destination;
    path.as_os_str() != "-" && weir_copier::is_volatile_path(path)
}

fn sync_name(options: &CopyOptions) -> &'static str {
    match options.sync_level() {
        CopySync::None => "none",
        CopySync::Data => "data",
        CopySync::Full => "full",
    }
}

/// Returns what a power cut now would cost.
fn power_cut(
    tally: &CopyTally,
    options: &CopyOptions,
    destination: &CopyDestination,
    is_stopped: bool,
) -> String {
    if tally.files == 0 && tally.errors > 0 {
        return "no file was copied to its end, see the errors".into();
    }
    if tally.files == 0 && is_stopped {
        return "the copy was stopped before a file was complete".into();
    }
    if tally.files == 0 {
        return "no file content was copied, so a power cut costs none".into();
    }
    const VOLATILE: &str = "(tmpfs, ramfs, or an overlay that ignores syncs)";
    let level = options.sync_level();
    let bytes = Size(tally.copied_bytes + tally.kept_bytes + tally.shared_bytes);
    let (all, durable, them) = match (bytes.0, tally.files) {
        (0, 1) => ("1 file".into(), "1 file and its name".into(), "it"),
        (0, files) => (counted(files, "file"), format!("{} and their names", counted(files, "file")), "them"),
        _ => (format!("all {bytes}"), format!("{bytes} and their names"), "them"),
    };
    // --verify syncs the content, also with --sync none.
    let is_synced = level != CopySync::None || tally.synced_files + tally.volatile_files > 0;
    match level {
        CopySync::None if is_volatile(destination) => {
            format!(
                "a power cut now costs {all}: no sync makes {them} durable on the target's file system {VOLATILE}"
            )
        }
        _ if !is_synced => format!(
            "a power cut now can cost {all}: nothing was synced; --sync full waits until everything is durable"
        ),
        _ if tally.volatile_files > 0 => format!(
            "a power cut now costs {} of {} files: no sync makes them durable on their file system {VOLATILE}",
            tally.volatile_files, tally.files
        ),
        _ if tally.synced_files < tally.files => format!(
            "a power cut now can cost {} of {} files: they are not durable",
            tally.files - tally.synced_files,
            tally.files
        ),
        CopySync::Full => format!("a power cut now costs nothing: {durable} are durable"),
        _ if bytes.0 == 0 => "a power cut now can cost new names: --sync full makes these durable too".into(),
        _ => format!(
            "{bytes} are durable; a power cut now can cost new names: --sync full makes these durable too"
        ),
    }
}
