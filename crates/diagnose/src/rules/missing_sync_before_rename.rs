//! missing-sync-before-rename: a new file takes an old one's name before its data is on the device.
//!
//! Evidence: a file that was written in this run was renamed, and neither it nor everything was synced in
//! between, by anyone. A power cut can leave an empty file under the good name. How bad that is depends on what is lost
//! by it (see `damage`): Warn where an older file's content is gone too, Info, and one for all of them, where it is not.
//! Most tools do this (git, rsync, sed -i, ar): never High. Files on a file system that a power cut clears anyway are
//! left out.

use weir_model::{Finding, FindingId, Severity, StreamKind};

use super::Rule;
use crate::context::Context;
use crate::damage::{Damage, Names};
use crate::fix::Topic;
use crate::language::Language;
use crate::renames::{Renamed, directory};
use crate::words::{count, quoted};

pub(crate) const RULE: Rule = Rule { id: FindingId::MissingSyncBeforeRename, judge };

/// In memory only, or made again where it is missing, by the standard of file hierarchies.
const VOLATILE: &[&str] = &["/dev/shm/", "/run/", "/proc/", "/sys/", "/var/cache/"];

fn judge(context: &Context) -> Vec<Finding> {
    let renamed = context.renamed();
    let mut names = Names::new(context);
    let (mut findings, mut harmless) = (Vec::new(), Vec::new());
    for one in &renamed {
        let damage = names.damage(context, one);
        match damage {
            _ if one.synced || one.unsure || !lasting(context, one) => {}
            Damage::Old => findings.push(found(context, one)),
            Damage::New | Damage::Again => harmless.push((one, damage)),
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
    let older = if renamed.replaced == Some(true) { "the older file that it replaced" } else { "what had that name" };
    let why = format!(
        "{} renamed a file with {} that were never synced to {}: after a power cut it can be empty, and {older} is \
            gone as well (on xfs; ext4 and btrfs keep one of the two, unless they are told not to).",
        context.name(renamed.pid),
        count(renamed.bytes, "written byte"),
        renamed.to
    );
    let draft = context.draft(RULE.id, Severity::Warn, renamed.writer, renamed.fd, Some(renamed.file));
    let draft =
        draft.count("unsynced_bytes", renamed.bytes).figure("at_s", renamed.at_s).at_path(&renamed.to);
    draft.say(why, format!("{}.", cure(context, renamed)))
}

/// All that can be told in one: none of it is worth more than a word.
fn in_sum(context: &Context, all: &[(&Renamed, Damage)]) -> Option<Finding> {
    let &(first, _) = all.first()?;
    let bytes: u64 = all.iter().map(|(one, _)| one.bytes).sum();
    let fresh = all.iter().filter(|(_, damage)| *damage == Damage::New).count();
    let rest = match (fresh, all.len()) {
        (0, 1) => "what it replaced can be made again",
        (1, 1) => "nothing else had that name",
        (fresh, all) if fresh == all => "nothing else had those names",
        (0, _) => "what they replaced can be made again",
        _ => "what some of them replaced can be made again",
    };
    let (who, to) = (context.name(first.pid), &first.to);
    let why = match all.len() {
        1 => format!(
            "{who} renamed a file with {} that were never synced to {to}: after a power cut it can be empty. No \
                older content is lost: {rest}.",
            count(bytes, "written byte")
        ),
        files => format!(
            "{} with {} were renamed before their data was synced, the first by {who} to {to}: after a power cut \
                they can be empty. No older content is lost: {rest}.",
            count(files as u64, "file"),
            count(bytes, "written byte")
        ),
    };
    let fix = format!(
        "if they must outlast a power cut: sync -f {} once, behind all of it; or for each {}.",
        quoted(directory(to)),
        context.code(first.writer, first.at_s, Topic::SyncRename)
    );
    let draft = context.draft(RULE.id, Severity::Info, first.writer, first.fd, Some(first.file));
    let draft = draft.count("unsynced_bytes", bytes).count("files", all.len() as u64);
    let draft = draft.count("new_names", fresh as u64).figure("at_s", first.at_s).at_path(to);
    Some(draft.say(why, fix))
}

/// Where programs of the system are, which nobody changes for this.
const INSTALLED: &[&str] = &["/usr/bin/", "/usr/sbin/", "/usr/lib/", "/usr/libexec/", "/bin/", "/sbin/"];

/// What programs of their own have for it.
const SWITCHES: &[(&str, &str)] =
    &[("git", "git config core.fsync all"), ("rsync", "rsync --fsync"), ("dpkg", "leave out --force-unsafe-io")];

/// Code for who can change it; else what can be done from outside.
fn cure(context: &Context, renamed: &Renamed) -> String {
    let code = context.code(renamed.writer, renamed.at_s, Topic::SyncRename);
    let image = context.image_at(renamed.writer, renamed.at_s).map(|(_, image)| image);
    let installed = image.filter(|image| INSTALLED.iter().any(|start| image.exe.starts_with(start)));
    // A script's own language is the one to write it in; and between two programs a sync has its place.
    let own = context.language(renamed.writer, renamed.at_s) == Language::C && renamed.writer == renamed.pid;
    let Some(image) = installed.filter(|_| own) else { return code };
    let switch = SWITCHES.iter().find(|(name, _)| *name == image.comm).map(|(_, switch)| *switch);
    let behind = format!("sync {} {} behind it", quoted(&renamed.to), quoted(directory(&renamed.to)));
    match switch {
        Some(switch) => format!("{switch}; or {behind}"),
        None => format!("{behind}; in its code: {code}"),
    }
}
