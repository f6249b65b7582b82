//! missing-dir-sync: a file's data is synced, but not the directory entry of its new name.
//!
//! Evidence: a file was written, synced and renamed, so the program prepares for power cuts, and no process synced the
//! directory of the new name, or everything, afterwards.

use weir_model::{Finding, Severity, StreamKind};

use crate::context::RuleContext;
use crate::renames::{RenamedFile, directory};
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

fn judge(context: &RuleContext) -> Vec<Finding> {
    let renamed = context.renamed_files();
    renamed
        .iter()
        .filter(|renamed| applies(context, renamed))
        .map(|renamed| finding(context, renamed))
        .collect()
}

fn applies(context: &RuleContext, renamed: &RenamedFile) -> bool {
    // Any process may sync the directory, such as the next command of a script.
    let may_be_hidden = || context.has_gap_of_any(renamed.at_s, f64::INFINITY);
    renamed.synced
        && context.kind(renamed.file) == StreamKind::File
        && !context.is_in_memory(renamed.file)
        && !context.directory_synced(renamed)
        && !may_be_hidden()
        && !context.is_temporary_name(renamed)
}

fn finding(context: &RuleContext, renamed: &RenamedFile) -> Finding {
    let why = format!(
        "{} renamed a synced file to {} and did not sync {}: a power cut can undo the rename.",
        context.name_at(renamed.pid, renamed.at_s),
        renamed.to,
        renamed.to.part(directory)
    );
    let severity = if context.is_installed_program(renamed) { Severity::Info } else { Severity::Warn };
    let finding = context.finding(&RULE, severity, renamed.pid, renamed.fd, Some(renamed.file));
    let finding = finding.count("bytes", renamed.bytes).figure("at_s", renamed.at_s).path(&renamed.to);
    finding.build(why, format!("{}.", context.sync_fix(renamed)))
}
