//! Copies one regular file: opens the target, moves the content, sets attributes, makes it durable, gives it its name.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{AtFlags, fstat, linkat, renameat};
use rustix::io::{Errno, pread, retry_on_intr};

use crate::context::{Context, Worker};
use crate::durability::{count_synced, sync_file, sync_operand_name, sync_parent};
use crate::engine::{ContentJob, ContentResult, copy_content, write_all};
use crate::entry::Entry;
use crate::error::{CopyError, CopyResult, OnPath};
use crate::file_stat::FileStat;
use crate::links::FirstCopy;
use crate::metadata::{
    Attributes, TargetAttributes, keep_old_attributes, parent_has_default_acl, set_attributes,
};
use crate::open_target::{OpenTarget, creation_mode, discard, open_target};
use crate::options::{CopyMethod, CopySync, Existing, FollowLinks, HoleSearch, TargetKind, Tristate};
use crate::resume::{copy_rest, is_copied, remove_journal};
use crate::small_file::share_small;
use crate::stream_file::fill_stream;
use crate::target::{TargetState, prepare_target, quoted};
use crate::verify::{VerifyJob, verify};

/// Copies a regular file that is open.
pub(crate) fn copy_regular(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    source: OwnedFd,
    stat: &FileStat,
) -> CopyResult<()> {
    if !may_be_linked(context, entry, stat) {
        return copy_once(context, worker, entry, source, stat).map(drop);
    }
    let slot = context.links.slot(stat.id());
    let mut first = slot.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(first) = &*first {
        return link_to(context, worker, entry, first, stat);
    }
    *first = copy_once(context, worker, entry, source, stat)?;
    Ok(())
}

/// Returns whether the file may be found again by another name: by a hard link, or by a symbolic link that is followed.
fn may_be_linked(context: &Context, entry: &Entry, stat: &FileStat) -> bool {
    let follows_links = match context.options.follow {
        FollowLinks::Always => true,
        FollowLinks::Operands => entry.is_operand(),
        FollowLinks::Never => false,
    };
    context.options.preserved.links && (stat.links > 1 || follows_links)
}

/// Makes a hard link to an earlier copy.
pub(crate) fn link_to(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    first: &FirstCopy,
    stat: &FileStat,
) -> CopyResult<()> {
    let link = || linkat(rustix::fs::CWD, &first.path, entry.target_dir(), entry.target, AtFlags::empty());
    let mut backup = None;
    match link() {
        Err(Errno::EXIST) => {
            if entry.target_stat(false).is_ok_and(|target| target.id() == first.id) {
                return Ok(());
            }
            match prepare_target(context, worker, entry, stat)? {
                // As with cp -u: a newer target becomes a link, too.
                TargetState::Keep if context.options.existing == Existing::Older => {
                    crate::target::remove_target(entry)?;
                }
                TargetState::Keep => return Ok(()),
                TargetState::Absent { backup: made } => backup = made,
                TargetState::Present { .. } => crate::target::remove_target(entry)?,
            }
            link().on_creation(entry.target_path(), "link")?;
        }
        other => other.on_creation(entry.target_path(), "link")?,
    }
    // The path of the first copy may be another file by now.
    if entry.target_stat(false).on(entry.target_path(), "stat")?.id() != first.id {
        crate::target::remove_target(entry)?;
        return Err(CopyError::Refused(format!(
            "{} was replaced while weir copied: {} is not linked to it",
            quoted(&first.path),
            quoted(&entry.target_path())
        )));
    }
    worker.tally.hard_links += 1;
    sync_operand_name(context, worker, entry)?;
    report_copied(context, entry, backup);
    Ok(())
}

pub(crate) fn report_copied(context: &Context, entry: &Entry, backup: Option<PathBuf>) {
    if context.options.verbose {
        context.reporter.copied(&entry.source_path(), &entry.target_path(), backup.as_deref());
    }
}

/// Copies the file once. Returns its target, to which later names of the source can be linked; None if the target was kept.
fn copy_once(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    source: OwnedFd,
    stat: &FileStat,
) -> CopyResult<Option<FirstCopy>> {
    context.control.add_total(stat.size);
    let needs_link = may_be_linked(context, entry, stat);
    if context.options.resume && !needs_link && is_copied(context, worker, entry, &source, stat)? {
        return Ok(None);
    }
    let mode = creation_mode(context, stat);
    let Some(mut target) = open_target(context, worker, entry, stat, mode)? else {
        return kept_copy(context, entry, needs_link);
    };
    let backup = target.backup.take();
    let unfinished = target.is_new && target.journal.is_none() && !is_small(context, worker, stat);
    let name = target.temporary.as_deref().unwrap_or(entry.target);
    let unfinished = unfinished.then(|| entry.with_target(name).target_path());
    if let Some(path) = &unfinished {
        context.control.begin_target(path.clone());
    }
    let completed = complete(context, worker, entry, &source, stat, &mut target);
    if let Some(path) = &unfinished {
        context.control.end_target(path);
    }
    if let Err(error) = completed {
        return Err(discard(context, entry, &target, error));
    }
    context.control.add_file();
    worker.tally.files += 1;
    let made = || fstat(&target.file).map(FileStat::from).map_err(io::Error::from);
    context.note_created(made);
    report_copied(context, entry, backup);
    let first = needs_link.then(|| made().map(|made| FirstCopy { path: entry.target_path(), id: made.id() }));
    first.transpose().on(entry.target_path(), "fstat")
}

/// Returns where a target is that `-u` keeps, if links to it may follow.
fn kept_copy(context: &Context, entry: &Entry, needs_link: bool) -> CopyResult<Option<FirstCopy>> {
    if !needs_link || context.options.existing != Existing::Older {
        return Ok(None);
    }
    let kept = entry.target_stat(false).on(entry.target_path(), "stat")?;
    Ok(Some(FirstCopy { path: entry.target_path(), id: kept.id() }))
}

/// Moves the content into an open target, and does everything that makes it the copy.
fn complete(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    source: &OwnedFd,
    stat: &FileStat,
    target: &mut OpenTarget,
) -> CopyResult<()> {
    let options = context.options;
    let mut bytes = 0;
    if options.kind != TargetKind::Attributes {
        bytes = fill(context, worker, entry, source, stat, target)?;
    }
    keep_old_attributes(context, entry, target)?;
    preserve_attributes(context, worker, entry, source.as_fd(), stat, target)?;
    commit(context, worker, entry, target, bytes)
}

/// Gives an open copy the attributes that the options preserve.
pub(crate) fn preserve_attributes(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    source: BorrowedFd<'_>,
    stat: &FileStat,
    target: &OpenTarget,
) -> CopyResult<()> {
    let preserved = context.options.preserved;
    if preserved.mode || preserved.owner || preserved.times || preserved.xattr || preserved.context {
        let attributes = Attributes {
            source,
            source_path: &|| entry.source_path(),
            stat,
            target: target.file.as_fd(),
            target_path: &|| entry.target_path(),
            has: attributes_of_new(context, entry, target),
            is_directory: false,
        };
        set_attributes(context, &mut worker.tally, &attributes)?;
    }
    Ok(())
}

/// Returns the known attributes of the target, so that weir makes no call that would change nothing.
fn attributes_of_new(context: &Context, entry: &Entry, target: &OpenTarget) -> TargetAttributes {
    let unknown = TargetAttributes { owner: None, permissions: None, may_have_acl: true };
    let (Some(mode), None) = (target.created_mode, target.replaced) else { return unknown };
    let identity = context.identity;
    let (owner, may_have_acl) = match entry.dir {
        // With the mount option grpid, files have the group of their directory.
        Some(dir) if dir.target_stat.gid == identity.gid => {
            (Some((identity.uid, identity.gid)), dir.has_default_acl)
        }
        Some(dir) => (None, dir.has_default_acl),
        None => (None, context.options.preserved.mode && parent_has_default_acl(&entry.target_path())),
    };
    TargetAttributes { owner, permissions: Some(mode), may_have_acl }
}

/// Moves the content. Returns the length of the target.
fn fill(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    source: &OwnedFd,
    stat: &FileStat,
    target: &mut OpenTarget,
) -> CopyResult<u64> {
    if target.is_stream {
        return fill_stream(context, worker, entry, source.as_fd(), stat, target);
    }
    if is_small(context, worker, stat) && !context.reporter.wants_content() {
        if share_small(context, worker, entry, source, stat, target) {
            count(worker, CopyMethod::Reflink, stat.size, 0);
            context.control.note_shared(stat.size)?;
            return Ok(stat.size);
        }
        let got =
            retry_on_intr(|| pread(source, &mut worker.buffer[..], 0)).on(entry.source_path(), "read")?;
        worker.tally.call("read");
        // A short read is the end of a regular file. Otherwise the file has changed, or is one of procfs.
        if got as u64 == stat.size && got > 0 {
            write_all(target.file.as_fd(), &worker.buffer[..got], &mut worker.tally)
                .on(entry.target_path(), "write")?;
            count(worker, CopyMethod::ReadWrite, stat.size, 0);
            context.control.advance(stat.size)?;
            return Ok(stat.size);
        }
    }
    fill_with_engine(context, worker, entry, source.as_fd(), stat, target)
}

/// Returns whether a file is copied by one call that shares its blocks, or by one read and one write.
fn is_small(context: &Context, worker: &Worker, stat: &FileStat) -> bool {
    let options = context.options;
    options.method == CopyMethod::Auto
        && (stat.size as usize) < worker.buffer.len()
        && stat.size > 0
        && !stat.may_have_holes()
        && options.buffer_bytes.is_none()
        && options.reflink != Tristate::Always
        && options.sparse != Tristate::Always
        && options.holes == HoleSearch::Seek
        && !options.drop_cache
        && !options.verify
        && options.limit.is_none()
}

/// Moves the content of a regular file into an empty one. Returns the length of the target.
pub(crate) fn fill_with_engine(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    source: BorrowedFd<'_>,
    stat: &FileStat,
    target: &mut OpenTarget,
) -> CopyResult<u64> {
    let (source_path, target_path) = (entry.source_path(), entry.target_path());
    context.control.set_current(target_path.as_os_str().as_encoded_bytes());
    let may_share = context.may_share(stat.dev, entry.target_dev());
    let job = ContentJob {
        source,
        source_path: &source_path,
        stat: *stat,
        target: target.file.as_fd(),
        target_path: &target_path,
        may_share,
        same_device: fstat(&target.file).is_ok_and(|made| FileStat::from(made).dev == stat.dev),
    };
    let (options, control) = (context.options, context.control);
    let mut result = match &mut target.journal {
        Some(journal) => copy_rest(context, worker, entry, source, stat, &target.file, journal)?,
        None => copy_content(&job, options, control, &mut worker.buffer, &mut worker.tally)?,
    };
    if result.cannot_share {
        context.note_refusal(stat.dev, entry.target_dev());
    }
    let kept = target.journal.as_ref().map_or(0, |journal| journal.verified_bytes);
    worker.tally.kept_bytes += kept;
    count(worker, result.method, result.bytes.saturating_sub(kept), result.hole_bytes);
    if result.has_grown {
        context.reporter.warning(&format!(
            "{} has grown while it was copied: the copy has its first {} bytes",
            quoted(&source_path),
            result.bytes
        ));
    }
    if options.verify {
        let files = VerifyJob {
            source,
            source_path: &source_path,
            stat,
            target: target.file.as_fd(),
            target_path: &target_path,
            device_bytes: None,
        };
        result.verified = Some(verify(&files, control, &mut worker.tally)?);
    }
    report_content(context, &source_path, &target_path, &result);
    Ok(result.bytes)
}

fn report_content(
    context: &Context,
    source: &std::path::Path,
    target: &std::path::Path,
    result: &ContentResult,
) {
    if context.reporter.wants_content() || !result.fallbacks.is_empty() || result.verified.is_some() {
        context.reporter.content(source, target, result);
    }
}

/// Adds a file's content to the summary.
pub(crate) fn count(worker: &mut Worker, method: CopyMethod, bytes: u64, hole_bytes: u64) {
    let data = bytes.saturating_sub(hole_bytes);
    let sum = worker.tally.methods.entry(method).or_default();
    *sum = (sum.0 + 1, sum.1 + data);
    match method {
        CopyMethod::Reflink => worker.tally.shared_bytes += data,
        _ => worker.tally.copied_bytes += data,
    }
    worker.tally.hole_bytes += hole_bytes;
}

/// Returns the device of a target. A new file is on that of its directory, which overlayfs may number in another way.
fn target_device(entry: &Entry, target: &OpenTarget) -> Result<u64, Errno> {
    match entry.dir {
        Some(dir) if target.is_new => Ok(dir.target_stat.dev),
        _ => fstat(&target.file).map(|stat| FileStat::from(stat).dev),
    }
}

/// Makes the target durable if asked, and gives it its name.
pub(crate) fn commit(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    target: &OpenTarget,
    bytes: u64,
) -> CopyResult<()> {
    let options = context.options;
    // A name must never lead to a file whose bytes are not there yet.
    let sync = options.sync_level();
    if !options.atomic && sync != CopySync::None && context.defers_syncs {
        let device = target_device(entry, target).on(entry.target_path(), "fstat")?;
        let (file, path) = (target.file.as_fd(), || entry.target_path());
        if context.ledger.note_file(device, file, &path, bytes, &mut worker.tally) {
            return Ok(());
        }
    }
    sync_file(target.file.as_fd(), &entry.target_path(), sync, context.control, &mut worker.tally)?;
    let name = target.renamed_to.as_deref().unwrap_or(entry.target);
    if let Some(temporary) = &target.temporary {
        context.control.check()?;
        renameat(entry.target_dir(), temporary, entry.target_dir(), name)
            .on(entry.target_path(), "rename")?;
    }
    if let Some(journal) = &target.journal {
        remove_journal(entry, journal);
    }
    if sync == CopySync::Full {
        sync_parent(entry, name, &mut worker.tally)?;
    }
    if options.syncs_content() {
        count_synced(context, worker, target.file.as_fd(), bytes);
    }
    Ok(())
}
