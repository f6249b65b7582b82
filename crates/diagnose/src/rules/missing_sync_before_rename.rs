//! missing-sync-before-rename: a new file takes an old one's name before its data is on the device.
//!
//! Evidence: a file that was written in this run was renamed, and neither it nor everything was synced in
//! between, by anyone. A power cut can leave an empty file under the good name. Most tools do this (git, rsync,
//! sed -i, ar): never High. Files on a file system that a power cut clears anyway are left out.

use weir_model::{Finding, FindingId, Severity, StreamKind};

use super::Rule;
use crate::context::Context;
use crate::fix::Topic;
use crate::renames::Renamed;
use crate::words::count;

pub(crate) const RULE: Rule = Rule { id: FindingId::MissingSyncBeforeRename, judge };

/// In memory only, or made again where it is missing, by the standard of file hierarchies.
const VOLATILE: &[&str] = &["/dev/shm/", "/run/", "/proc/", "/sys/", "/var/cache/"];

fn judge(context: &Context) -> Vec<Finding> {
    let renamed = context.renamed();
    let unsafe_ones = renamed.iter().filter(|renamed| !renamed.synced && lasting(context, renamed));
    unsafe_ones.map(|renamed| found(context, renamed)).collect()
}

fn lasting(context: &Context, renamed: &Renamed) -> bool {
    let file = context.kind(renamed.file) == StreamKind::File;
    file && !VOLATILE.iter().any(|start| renamed.to.starts_with(start))
}

fn found(context: &Context, renamed: &Renamed) -> Finding {
    let why = format!(
        "{} renamed a file with {} that were never synced to {}: after a power cut it can be empty.",
        context.name(renamed.pid),
        count(renamed.bytes, "written byte"),
        renamed.to
    );
    let code = context.code(renamed.writer, renamed.at_s, Topic::SyncRename);
    let draft = context.draft(RULE.id, Severity::Warn, renamed.writer, renamed.fd, Some(renamed.file));
    let draft =
        draft.count("unsynced_bytes", renamed.bytes).figure("at_s", renamed.at_s).at_path(&renamed.to);
    draft.say(why, format!("{code}."))
}
