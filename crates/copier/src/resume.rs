//! `--resume`: copies the rest of a file, and notes each part in the journal.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchmod, fstat, ftruncate, openat, unlinkat};
use rustix::io::retry_on_intr;
use sha2::{Digest, Sha256};

use crate::context::{Context, Worker};
use crate::durability::{sync_file, sync_operand_name};
use crate::engine::{CacheWindow, ContentResult, Transfer, hole_bytes, pread_full, put, share_blocks};
use crate::entry::Entry;
use crate::error::{CopyError, CopyResult, OnPath};
use crate::file_stat::FileStat;
use crate::journal::{Journal, PART_BYTES};
use crate::metadata::{Attributes, TargetAttributes, set_attributes};
use crate::open_target::creation_mode;
use crate::options::{CopyMethod, CopyOptions, Tristate};
use crate::target::quoted;

/// The bytes of one read and one write.
const CHUNK_BYTES: usize = 256 << 10;

/// Returns whether a file is large enough that its copy is worth a journal.
pub(crate) fn is_resumable(options: &CopyOptions, source: &FileStat) -> bool {
    options.resume && source.size > PART_BYTES
}

/// Returns whether the target is there already, byte for byte: a copy of an earlier run. It gets the attributes that the
/// options preserve, and is made durable.
pub(crate) fn is_copied(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    source: &OwnedFd,
    stat: &FileStat,
) -> CopyResult<bool> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let open = || openat(entry.target_dir(), entry.target, flags, Mode::empty());
    let Ok(target) = retry_on_intr(open) else { return Ok(false) };
    let found: FileStat = fstat(&target).on(entry.target_path(), "fstat")?.into();
    let may_be = found.kind() == FileType::RegularFile && found.size == stat.size && found.id() != stat.id();
    if !may_be || !is_equal(context, entry, source, &target)? {
        return Ok(false);
    }
    worker.tally.verified_bytes += stat.size;
    worker.tally.skipped += 1;
    context.control.keep(stat.size);
    let attributes = Attributes {
        source: source.as_fd(),
        source_path: &|| entry.source_path(),
        stat,
        target: target.as_fd(),
        target_path: &|| entry.target_path(),
        has: TargetAttributes { owner: Some((found.uid, found.gid)), permissions: None, may_have_acl: true },
        is_directory: false,
    };
    set_attributes(context, &mut worker.tally, &attributes)?;
    let level = context.options.sync_level();
    sync_file(target.as_fd(), &entry.target_path(), level, context.control, &mut worker.tally)?;
    sync_operand_name(context, worker, entry)?;
    Ok(true)
}

fn is_equal(context: &Context, entry: &Entry, source: &OwnedFd, target: &OwnedFd) -> CopyResult<bool> {
    let mut buffers = [vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]];
    let [left, right] = &mut buffers;
    let mut at = 0;
    loop {
        context.control.check()?;
        let of_source = pread_full(source.as_fd(), left, at).on(entry.source_path(), "read")?;
        let of_target = pread_full(target.as_fd(), right, at).on(entry.target_path(), "read")?;
        if left[..of_source] != right[..of_target] {
            return Ok(false);
        }
        at += of_source as u64;
        if of_source < CHUNK_BYTES {
            return Ok(true);
        }
    }
}

/// Copies the parts that are not in the temporary file yet. Returns the result as if the whole file had been copied now.
pub(crate) fn copy_rest(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    source: BorrowedFd<'_>,
    stat: &FileStat,
    target: &OwnedFd,
    journal: &mut Journal,
) -> CopyResult<ContentResult> {
    let options = context.options;
    let begin = journal.verified_bytes;
    let may_share = options.permits_sharing() && begin == 0;
    let method = match may_share && share_blocks(source, target.as_fd(), &mut worker.tally).is_ok() {
        true => CopyMethod::Reflink,
        false => CopyMethod::ReadWrite,
    };
    let hole_bytes = if method == CopyMethod::ReadWrite {
        if begin > 0 {
            context.reporter.note(&format!(
                "{}: continues at byte {begin} of {}; the bytes before it were read back and are right",
                quoted(&entry.target_path()),
                stat.size
            ));
        }
        context.control.keep(begin);
        copy_parts(context, worker, entry, source, stat, target, journal)?
    } else {
        context.control.note_shared(stat.size)?;
        hole_bytes(source, stat, &mut worker.tally)
    };
    let now: FileStat = fstat(source).on(entry.source_path(), "fstat")?.into();
    if (now.size, now.modified, now.changed) != (stat.size, stat.modified, stat.changed) {
        return Err(CopyError::Refused(format!(
            "{} was changed while it was copied: copy it again when no program writes to it",
            quoted(&entry.source_path())
        )));
    }
    let mode = creation_mode(context, stat) & !context.identity.umask;
    fchmod(target, Mode::from_raw_mode(mode)).on(entry.target_path(), "fchmod")?;
    Ok(ContentResult::complete(method, stat.size, hole_bytes))
}

/// Copies parts up to the end. Returns the bytes that became holes.
fn copy_parts(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    source: BorrowedFd<'_>,
    stat: &FileStat,
    target: &OwnedFd,
    journal: &mut Journal,
) -> CopyResult<u64> {
    let options = context.options;
    let chunk = options.buffer_bytes.unwrap_or(CHUNK_BYTES);
    worker.buffer.grow(chunk);
    let keeps_holes = stat.may_have_holes() && options.sparse != Tristate::Never;
    let mut transfer = Transfer {
        source,
        target: target.as_fd(),
        control: context.control,
        tally: &mut worker.tally,
        buffer: &mut worker.buffer,
        chunk,
        chunk_is_chosen: true,
        // The file was cut off behind the verified bytes, so that no old data is under a hole.
        skip_zeros: keeps_holes || options.sparse == Tristate::Always,
        zero_bytes: 0,
        window: options.drop_cache.then(|| CacheWindow::new(chunk)),
    };
    let (source_path, target_path) = (entry.source_path(), entry.target_path());
    let (mut at, mut hash) = (journal.verified_bytes, Sha256::new());
    transfer.enter(at);
    while at < stat.size {
        let part_end = (at / PART_BYTES + 1) * PART_BYTES;
        let wanted = transfer.next_chunk(at, part_end.min(stat.size)).min(transfer.buffer.len());
        transfer.tally.call("read");
        let got = pread_full(transfer.source, &mut transfer.buffer[..wanted], at).on(&source_path, "read")?;
        if got < wanted {
            return Err(CopyError::Refused(format!(
                "{}: the file became shorter while it was copied",
                quoted(&source_path)
            )));
        }
        hash.update(&transfer.buffer[..got]);
        put(&mut transfer, at, got).map_err(|error| error.on(&source_path, &target_path))?;
        at += got as u64;
        if at.is_multiple_of(PART_BYTES) {
            if transfer.skip_zeros {
                // The part is read back later, also if it ends with a hole.
                retry_on_intr(|| ftruncate(transfer.target, at)).on(&target_path, "ftruncate")?;
            }
            journal.note_part(&hash).on(&target_path, "write to the journal")?;
            hash = Sha256::new();
        }
        transfer
            .arrived(at - got as u64, got as u64)
            .map_err(|error| error.on(&source_path, &target_path))?;
    }
    if transfer.skip_zeros {
        retry_on_intr(|| ftruncate(transfer.target, stat.size)).on(&target_path, "ftruncate")?;
    }
    let holes = transfer.zero_bytes;
    if let Some(mut window) = transfer.window.take() {
        let cached = window.finish(source.as_fd(), target.as_fd(), transfer.tally);
        if let Some(cached) = cached.on(&target_path, "sync_file_range")? {
            *transfer.tally.cached_bytes.get_or_insert(0) += cached;
        }
    }
    Ok(holes)
}

/// Removes the journal of a copy that has its name.
pub(crate) fn remove_journal(entry: &Entry, journal: &Journal) {
    let _removed = unlinkat(entry.target_dir(), &journal.name, AtFlags::empty());
}
