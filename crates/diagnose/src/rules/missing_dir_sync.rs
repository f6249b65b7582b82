//! missing-dir-sync: the file was synced, its new name was not.
//!
//! Evidence: a file was written, synced and renamed, so the program cares for power cuts, and nobody synced the
//! directory that it was renamed into, or everything, afterwards.

use weir_model::{Finding, Severity, StreamKind};

use crate::context::Context;
use crate::renames::{Renamed, directory};
use crate::rule::{GainKind, MergeKey, Rule, SeverityRule};

pub(crate) const RULE: Rule = Rule {
    id: "missing-dir-sync",
    title: "Old file back after a power cut",
    meaning: "the directory entry is not synced: a power cut can undo the rename",
    position: 170,
    severity: SeverityRule::Effect { least: Severity::Info, most: Severity::Warn },
    gain: GainKind::None,
    merge: MergeKey::Program,
    judge,
    ..Rule::DEFAULT
};

fn judge(context: &Context) -> Vec<Finding> {
    let renamed = context.renamed();
    let synced =
        renamed.iter().filter(|renamed| renamed.synced && context.kind(renamed.file) == StreamKind::File);
    let unseen =
        |renamed: &Renamed| context.looked_away(renamed.pid, renamed.at_s, context.ended_at(renamed.pid));
    synced
        .filter(|renamed| {
            !context.directory_synced(renamed) && !unseen(renamed) && !context.is_passing(renamed)
        })
        .map(|renamed| found(context, renamed))
        .collect()
}

fn found(context: &Context, renamed: &Renamed) -> Finding {
    let why = format!(
        "{} renamed a synced file to {} and did not sync {}: a power cut can undo the rename.",
        context.name(renamed.pid),
        renamed.to,
        directory(&renamed.to)
    );
    let severity = if context.is_decided(renamed) { Severity::Info } else { Severity::Warn };
    let draft = context.draft(&RULE, severity, renamed.pid, renamed.fd, Some(renamed.file));
    let draft = draft.count("bytes", renamed.bytes).figure("at_s", renamed.at_s).at_path(&renamed.to);
    draft.say(why, format!("{}.", context.sync_cure(renamed)))
}
