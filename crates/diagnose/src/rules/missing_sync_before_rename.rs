//! missing-sync-before-rename: a file takes its final name before its data is on the device.
//!
//! Evidence: a file that was written in this run was renamed, and no process synced it, or everything, in between. A power cut
//! can leave an empty file under the new name. The severity depends on what is lost then (see `power_cut`): warn if the
//! content of an older file is lost too; otherwise info, in one finding for all such files. Installed programs leave out the
//! sync knowingly (git, rsync, sed -i), and a user does not change them: info. Files on a file system in memory, below
//! directories that usually are one, and below /var/cache are not reported.

use weir_model::{Finding, Severity, StreamKind};

use crate::code_fix::CodeFix;
use crate::context::RuleContext;
use crate::power_cut::{PowerCutLoss, RenameHistory};
use crate::renames::{RenamedFile, directory};
use crate::rule::Supersedes::OnPath;
use crate::rule::{GainKind, MergeKey, Rule, SeverityRule};
use crate::text::count;
use weir_model::shell_quoted;

pub(crate) const RULE: Rule = Rule {
    id: "missing-sync-before-rename",
    title: "Empty file after a power cut",
    meaning: "a file is renamed into place before its data is on the device",
    position: 160,
    severity: SeverityRule::Effect { least: Severity::Info, most: Severity::Warn },
    gain: GainKind::None,
    supersedes: &[OnPath("missing-dir-sync")],
    merge: MergeKey::Program,
    judge,
    ..Rule::DEFAULT
};

/// Directories in memory, and those whose files programs can make again, by the Filesystem Hierarchy Standard.
const VOLATILE: &[&str] = &["/dev/shm/", "/run/", "/proc/", "/sys/", "/var/cache/"];

/// The file systems on which an older file is lost.
const FILE_SYSTEMS: &str = "(on xfs; ext4 and btrfs keep one of the two, unless mounted otherwise)";

fn judge(context: &RuleContext) -> Vec<Finding> {
    let renamed = context.renamed_files();
    let mut history = RenameHistory::new(context, &renamed);
    let (mut findings, mut harmless) = (Vec::new(), Vec::new());
    for one in &renamed {
        let loss = history.add_and_classify(context, one);
        match loss {
            _ if one.synced || one.unsure || !is_lasting(context, one) || context.is_temporary_name(one) => {}
            PowerCutLoss::OldContent if !context.is_installed_program(one) => {
                findings.push(finding(context, one));
            }
            loss => harmless.push((one, loss)),
        }
    }
    findings.extend(summary(context, &harmless));
    findings
}

fn is_lasting(context: &RuleContext, renamed: &RenamedFile) -> bool {
    let is_file = context.kind(renamed.file) == StreamKind::File && !context.is_in_memory(renamed.file);
    is_file && !VOLATILE.iter().any(|start| renamed.to.exact().starts_with(start))
}

/// Returns the finding about one file that replaced older content.
fn finding(context: &RuleContext, renamed: &RenamedFile) -> Finding {
    let older = match renamed.replaced {
        Some(true) => "the older file that it replaced",
        _ => "any older file of that name",
    };
    let why = format!(
        "{} renamed a file with {} that were never synced to {}: after a power cut it can be empty, and {older} is \
            lost as well {FILE_SYSTEMS}.",
        context.name_at(renamed.pid, renamed.at_s),
        count(renamed.bytes, "written byte"),
        renamed.to
    );
    let severity = if context.is_installed_program(renamed) { Severity::Info } else { Severity::Warn };
    let finding = context.finding(&RULE, severity, renamed.writer, renamed.fd, Some(renamed.file));
    let finding =
        finding.count("unsynced_bytes", renamed.bytes).figure("at_s", renamed.at_s).path(&renamed.to);
    finding.build(why, format!("{}.", context.sync_fix(renamed)))
}

/// Returns one finding, of severity info, about all files whose loss matters little.
fn summary(context: &RuleContext, files: &[(&RenamedFile, PowerCutLoss)]) -> Option<Finding> {
    let with = |wanted: PowerCutLoss| files.iter().filter(move |(_, loss)| *loss == wanted);
    let &(first, loss) = with(PowerCutLoss::OldContent).next().or(files.first())?;
    if let ([_], PowerCutLoss::OldContent) = (files, loss) {
        return Some(finding(context, first));
    }
    let bytes: u64 = files.iter().map(|(renamed, _)| renamed.bytes).sum();
    let (new, old) = (with(PowerCutLoss::NewContent).count(), with(PowerCutLoss::OldContent).count());
    let risk = describe_risk(context, first, files.len(), bytes);
    let loss = match old {
        0 => format!("No older content is lost: {}", why_harmless(new, files.len())),
        old => format!("For {old} of them an older file is lost as well {FILE_SYSTEMS}"),
    };
    let fix = match old {
        0 => format!(
            "if they must survive a power cut: sync -f {} once after the run; or for each {}.",
            shell_quoted(directory(first.to.exact())),
            context.code_fix(first.writer, first.at_s, (first.fd, Some(first.file)), CodeFix::SyncRename)
        ),
        _ => format!("{}.", context.sync_fix_of_all(first, files.iter().map(|(renamed, _)| *renamed))),
    };
    let finding = context.finding(&RULE, Severity::Info, first.writer, first.fd, Some(first.file));
    let finding = finding.count("unsynced_bytes", bytes).count("files", files.len() as u64);
    let finding = finding.count("new_names", new as u64).figure("at_s", first.at_s).path(&first.to);
    Some(finding.build(format!("{risk}. {loss}."), fix))
}

fn describe_risk(context: &RuleContext, first: &RenamedFile, files: usize, bytes: u64) -> String {
    let (name, to, bytes) = (context.name_at(first.pid, first.at_s), &first.to, count(bytes, "written byte"));
    match files {
        1 => format!(
            "{name} renamed a file with {bytes} that were never synced to {to}: after a power cut it can be empty"
        ),
        files => format!(
            "{} with {bytes} were renamed before their data was synced, one by {name} to {to}: after a power cut they can \
                be empty",
            count(files as u64, "file")
        ),
    }
}

/// Returns why no older content is lost.
fn why_harmless(new: usize, files: usize) -> &'static str {
    match (new, files) {
        (0, 1) => "what it replaced can be made again",
        (1, 1) => "no other file had that name",
        (new, files) if new == files => "no other file had those names",
        (0, _) => "what they replaced can be made again",
        _ => "what some of them replaced can be made again",
    }
}
