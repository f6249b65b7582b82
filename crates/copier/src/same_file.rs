//! Decides what happens if source and target are the same file, as cp does: writing would destroy the source.

use rustix::fs::FileType;

use crate::context::Context;
use crate::entry::Entry;
use crate::error::{CopyError, CopyResult, OnPath};
use crate::file_stat::FileStat;
use crate::options::{FollowLinks, TargetKind};
use crate::target::quoted;

/// The fate of a target that could be the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SameFile {
    /// The target may be overwritten, renamed or removed.
    Replace,
    /// The target is already the wanted link or file: no call is needed.
    Done,
}

/// The names and states of source and target.
struct Pair<'a> {
    context: &'a Context<'a>,
    entry: &'a Entry<'a>,
    /// The source's name, and the target's, if they are symbolic links: the links.
    source_link: FileStat,
    target_link: FileStat,
}

/// Compares the source with an existing target, whose name is `named` by lstat(2) and `followed` by stat(2). Fails if they are the
/// same file and the copy would destroy it.
pub(crate) fn check_same_file(
    context: &Context,
    entry: &Entry,
    source: &FileStat,
    named: &FileStat,
    followed: Option<&FileStat>,
) -> CopyResult<SameFile> {
    let options = context.options;
    let is_link = |stat: &FileStat| stat.kind() == FileType::Symlink;
    let is_target = |stat: &FileStat| stat.id() == source.id();
    // A source that is a link and is not followed may lead to the target.
    let referent = if is_link(source) { entry.source_stat(true).ok() } else { None };
    let leads_to_target =
        referent.is_some_and(|referent| followed.is_some_and(|target| target.id() == referent.id()));
    if !is_target(named) && !followed.is_some_and(is_target) && !leads_to_target {
        return Ok(SameFile::Replace);
    }
    // A target that is removed, renamed or linked is its name; only a regular file is written through a link.
    let uses_name = source.kind() != FileType::RegularFile
        || options.kind == TargetKind::HardLink
        || options.kind == TargetKind::SymbolicLink
        || options.backup.is_some()
        || options.remove_destination;
    let target = if uses_name { named } else { followed.unwrap_or(named) };
    let is_same = is_target(target);
    if is_same && options.kind == TargetKind::HardLink {
        return Ok(SameFile::Done);
    }
    let never_follows = options.follow == FollowLinks::Never;
    if never_follows {
        let pair = Pair { context, entry, source_link: *source, target_link: *target };
        if is_link(source) && is_link(target) {
            return pair.judge_links(is_same);
        }
        return pair.judge(is_same);
    }
    if !is_same {
        return Ok(SameFile::Replace);
    }
    let source_link = entry.source_stat(false).on(entry.source_path(), "stat")?;
    let pair = Pair { context, entry, source_link, target_link: *named };
    if is_link(&source_link) && is_link(named) && options.remove_destination {
        return Ok(SameFile::Replace);
    }
    pair.judge(source_link.id() == named.id())
}

impl Pair<'_> {
    /// Two symbolic links, of which the source is copied as a link.
    fn judge_links(&self, are_one: bool) -> CopyResult<SameFile> {
        if is_same_name(self.entry) {
            return self.refuse();
        }
        let makes_backup = self.context.options.backup.is_some();
        Ok(if are_one && !makes_backup { SameFile::Done } else { SameFile::Replace })
    }

    /// `are_one`: both names are the same inode, link or file.
    fn judge(&self, are_one: bool) -> CopyResult<SameFile> {
        let options = self.context.options;
        let is_link = |stat: &FileStat| stat.kind() == FileType::Symlink;
        let (source_is_link, target_is_link) = (is_link(&self.source_link), is_link(&self.target_link));
        if options.backup.is_some() {
            let follows = options.follow != FollowLinks::Never;
            let loses_source = match are_one {
                true => is_same_name(self.entry),
                false => follows && source_is_link && !target_is_link,
            };
            return if loses_source { self.refuse() } else { Ok(SameFile::Replace) };
        }
        if options.remove_destination {
            let is_other_name = are_one && self.target_link.links > 1 && !is_same_name(self.entry);
            if target_is_link || is_other_name {
                return Ok(SameFile::Replace);
            }
        }
        if !source_is_link && !target_is_link && !are_one {
            return Ok(SameFile::Replace);
        }
        if options.kind == TargetKind::SymbolicLink && target_is_link {
            return Ok(SameFile::Replace);
        }
        if options.follow == FollowLinks::Never {
            let source = self.entry.source_stat(true);
            let target = self.entry.target_stat(true);
            let (Ok(source), Ok(target)) = (source, target) else { return Ok(SameFile::Replace) };
            if source.id() != target.id() {
                return Ok(SameFile::Replace);
            }
            if options.kind == TargetKind::HardLink {
                return Ok(if target_is_link { SameFile::Replace } else { SameFile::Done });
            }
        }
        self.refuse()
    }

    fn refuse(&self) -> CopyResult<SameFile> {
        Err(CopyError::Refused(format!(
            "{} and {} are the same file",
            quoted(&self.entry.source_path()),
            quoted(&self.entry.target_path())
        )))
    }
}

/// Returns whether source and target are one name in one directory.
fn is_same_name(entry: &Entry) -> bool {
    let (source, target) = (entry.source_path(), entry.target_path());
    let parent = |path: &std::path::Path| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(std::path::Path::new("."));
        rustix::fs::stat(parent).map(|stat| FileStat::from(stat).id()).ok()
    };
    source.file_name() == target.file_name() && parent(&source) == parent(&target)
}
