//! Copies streams: standard input and output as `-`, pipes, terminals and devices.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, major, minor, openat, unlinkat};
use rustix::io::retry_on_intr;

use crate::context::{Context, Worker};
use crate::durability::{sync_file, sync_parent};
use crate::engine::{StreamJob, copy_stream};
use crate::entry::Entry;
use crate::error::{CopyError, CopyResult, OnPath};
use crate::file::report_copied;
use crate::file_stat::FileStat;
use crate::options::CopySync;
use crate::target::{TargetState, create_new, open_existing, prepare_target, quoted};

/// The buffer of streams: what a pipe holds by default, twice.
const BUFFER_BYTES: usize = 128 << 10;

/// Copies the content of a FIFO, a device or a socket's file.
pub(crate) fn copy_stream_file(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    stat: &FileStat,
) -> CopyResult<()> {
    check_device(context, stat, &entry.source_path())?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
    let source = retry_on_intr(|| openat(entry.source_dir(), entry.source, flags, Mode::empty()))
        .on(entry.source_path(), "open")?;
    copy_to_file(context, worker, entry, source.as_fd(), stat)
}

/// Copies an open stream into a file, which is removed if it is new and the copy fails.
pub(crate) fn copy_to_file(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    source: BorrowedFd<'_>,
    stat: &FileStat,
) -> CopyResult<()> {
    let mode = if stat.kind() == FileType::RegularFile { stat.permissions() & 0o777 } else { 0o666 };
    let mut backup = None;
    let (target, is_new) = match create_new(entry, mode) {
        Ok(target) => (target, true),
        Err(rustix::io::Errno::EXIST) => match prepare_target(context, worker, entry, stat)? {
            TargetState::Keep => return Ok(()),
            TargetState::Absent { backup: made } => {
                backup = made;
                (create_new(entry, mode).on(entry.target_path(), "open")?, true)
            }
            TargetState::Present { stat, is_link } => {
                check_device(context, &stat, &entry.target_path())?;
                open_existing(context, entry, is_link, mode)?
            }
        },
        Err(errno) => return Err(CopyError::call(entry.target_path(), "open", errno)),
    };
    if is_new {
        context.control.begin_target(entry.target_path());
    }
    let copied = pump(context, worker, source, &entry.source_path(), target.as_fd(), &entry.target_path());
    let finished = copied.and_then(|bytes| {
        let sync = context.options.sync;
        sync_file(target.as_fd(), &entry.target_path(), sync, context.control, &mut worker.tally)?;
        if sync == CopySync::Full {
            sync_parent(entry, entry.target, &mut worker.tally)?;
        }
        if sync != CopySync::None {
            worker.tally.synced_files += 1;
            context.control.add_durable(bytes);
        }
        Ok(())
    });
    context.control.end_target(&entry.target_path());
    if finished.is_err() && is_new {
        let _removed = unlinkat(entry.target_dir(), entry.target, AtFlags::empty());
    }
    finished?;
    report_copied(context, entry, backup);
    Ok(())
}

/// Moves all bytes of one descriptor to another. Returns their number.
pub(crate) fn pump(
    context: &Context,
    worker: &mut Worker,
    source: BorrowedFd<'_>,
    source_path: &Path,
    target: BorrowedFd<'_>,
    target_path: &Path,
) -> CopyResult<u64> {
    let stat: FileStat = fstat(source).on(source_path, "fstat")?.into();
    let target_stat: FileStat = fstat(target).on(target_path, "fstat")?.into();
    if stat.kind() == FileType::RegularFile && stat.id() == target_stat.id() {
        return Err(CopyError::Refused(format!("{}: input file is output file", quoted(source_path))));
    }
    context.control.set_current(target_path.as_os_str().as_encoded_bytes());
    let job = StreamJob {
        source,
        source_path,
        target,
        target_path,
        source_is_pipe: stat.kind() == FileType::Fifo,
        chunk: context.options.buffer_bytes.unwrap_or(BUFFER_BYTES),
    };
    let (options, control) = (context.options, context.control);
    let (bytes, method) = copy_stream(&job, options.method, control, &mut worker.buffer, &mut worker.tally)?;
    let sum = worker.tally.methods.entry(method).or_default();
    *sum = (sum.0 + 1, sum.1 + bytes);
    worker.tally.copied_bytes += bytes;
    worker.tally.files += 1;
    control.add_file();
    Ok(bytes)
}

/// Fails for a device that a mistake could destroy, or that has no end, unless `--device` was given. /dev/null, /dev/zero,
/// /dev/random, terminals and their like are harmless.
pub(crate) fn check_device(context: &Context, stat: &FileStat, path: &Path) -> CopyResult<()> {
    const MEMORY: u32 = 1;
    const TERMINALS: [u32; 2] = [4, 5];
    const PSEUDO_TERMINALS: std::ops::RangeInclusive<u32> = 136..=143;
    let number = major(stat.rdev);
    let is_harmless = match stat.kind() {
        FileType::BlockDevice => false,
        FileType::CharacterDevice => {
            // null, zero, full, random, urandom; not mem, port and kmsg.
            (number == MEMORY && [3, 5, 7, 8, 9].contains(&minor(stat.rdev)))
                || TERMINALS.contains(&number)
                || PSEUDO_TERMINALS.contains(&number)
        }
        _ => true,
    };
    if is_harmless || context.options.devices {
        return Ok(());
    }
    Err(CopyError::Refused(format!(
        "{} is a device: check that it is the right one, then add --device",
        quoted(path)
    )))
}
