//! missing-sync-before-rename: a new file takes an old one's name before its data is on the device.
//!
//! Evidence: a file that was written in this run was renamed, and neither it nor everything was synced in
//! between, by anyone. A power cut can leave an empty file under the good name. How bad that is depends on what is lost
//! by it (see `damage`): Warn where an older file's content is gone too, Info, and one for all of them, where it is not.
//! Tools of the system do this knowingly (git, rsync, sed -i), and nobody changes them for it: Info. Never High. Files on a file system that a power cut clears anyway are
//! left out.

use weir_model::{Finding, Severity, StreamKind};

use crate::context::Context;
use crate::damage::{Damage, Names};
use crate::fix::Topic;
use crate::renames::{Renamed, directory};
use crate::rule::Supersedes::OnPath;
use crate::rule::{GainKind, MergeKey, Rule, SeverityRule};
use crate::words::{count, quoted};

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

/// In memory only, or made again where it is missing, by the standard of file hierarchies.
const VOLATILE: &[&str] = &["/dev/shm/", "/run/", "/proc/", "/sys/", "/var/cache/"];

fn judge(context: &Context) -> Vec<Finding> {
    let renamed = context.renamed();
    let mut names = Names::new(context, &renamed);
    let (mut findings, mut harmless) = (Vec::new(), Vec::new());
    for one in &renamed {
        let damage = names.damage(context, one);
        match damage {
            _ if one.synced || one.unsure || !lasting(context, one) || context.is_passing(one) => {}
            Damage::Old if !context.is_decided(one) => findings.push(found(context, one)),
            damage => harmless.push((one, damage)),
        }
    }
    findings.extend(in_sum(context, &harmless));
    findings
}

fn lasting(context: &Context, renamed: &Renamed) -> bool {
    let file = context.kind(renamed.file) == StreamKind::File;
    file && !VOLATILE.iter().any(|start| renamed.to.starts_with(start))
}

fn found(context: &Context, renamed: &Renamed) -> Finding {
    let older =
        if renamed.replaced == Some(true) { "the older file that it replaced" } else { "what had that name" };
    let why = format!(
        "{} renamed a file with {} that were never synced to {}: after a power cut it can be empty, and {older} is \
            gone as well {WHERE}.",
        context.name(renamed.pid),
        count(renamed.bytes, "written byte"),
        renamed.to
    );
    let severity = if context.is_decided(renamed) { Severity::Info } else { Severity::Warn };
    let draft = context.draft(&RULE, severity, renamed.writer, renamed.fd, Some(renamed.file));
    let draft =
        draft.count("unsynced_bytes", renamed.bytes).figure("at_s", renamed.at_s).at_path(&renamed.to);
    draft.say(why, format!("{}.", context.sync_cure(renamed)))
}

/// On which file systems an older file is lost.
const WHERE: &str = "(on xfs; ext4 and btrfs keep one of the two, unless they are told not to)";

/// All that can be told in one: none of it is worth more than a word.
fn in_sum(context: &Context, all: &[(&Renamed, Damage)]) -> Option<Finding> {
    let with = |wanted: Damage| all.iter().filter(move |(_, damage)| *damage == wanted);
    let &(first, damage) = with(Damage::Old).next().or(all.first())?;
    if let ([_], Damage::Old) = (all, damage) {
        return Some(found(context, first));
    }
    let bytes: u64 = all.iter().map(|(one, _)| one.bytes).sum();
    let (who, to, fresh, old) =
        (context.name(first.pid), &first.to, with(Damage::New).count(), with(Damage::Old).count());
    let what = match all.len() {
        1 => format!(
            "{who} renamed a file with {} that were never synced to {to}: after a power cut it can be empty",
            count(bytes, "written byte")
        ),
        files => format!(
            "{} with {} were renamed before their data was synced, one by {who} to {to}: after a power cut they can \
                be empty",
            count(files as u64, "file"),
            count(bytes, "written byte")
        ),
    };
    let rest = match (old, all.len()) {
        (0, all) => format!("No older content is lost: {}", harmless(fresh, all)),
        (old, _) => format!("Of {old} of them an older file is gone as well then {WHERE}"),
    };
    let fix = match old {
        0 => format!(
            "if they must outlast a power cut: sync -f {} once, behind all of it; or for each {}.",
            quoted(directory(to)),
            context.code(first.writer, first.at_s, Topic::SyncRename)
        ),
        _ => format!("{}.", context.sync_cure(first)),
    };
    let draft = context.draft(&RULE, Severity::Info, first.writer, first.fd, Some(first.file));
    let draft = draft.count("unsynced_bytes", bytes).count("files", all.len() as u64);
    let draft = draft.count("new_names", fresh as u64).figure("at_s", first.at_s).at_path(to);
    Some(draft.say(format!("{what}. {rest}."), fix))
}

/// Why nothing older is lost.
fn harmless(fresh: usize, all: usize) -> &'static str {
    match (fresh, all) {
        (0, 1) => "what it replaced can be made again",
        (1, 1) => "nothing else had that name",
        (fresh, all) if fresh == all => "nothing else had those names",
        (0, _) => "what they replaced can be made again",
        _ => "what some of them replaced can be made again",
    }
}
