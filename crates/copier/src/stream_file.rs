//! Copies streams: standard input and output as `-`, pipes, terminals and devices.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, SeekFrom, fstat, major, minor, openat, seek, tell};
use rustix::io::{Errno, retry_on_intr};
use weir_sys::errno_text;

use crate::context::{Context, Worker};
use crate::engine::{ContentResult, StreamJob, copy_stream};
use crate::entry::Entry;
use crate::error::{CopyError, CopyResult, OnPath};
use crate::file::{commit, count, fill_with_engine, preserve_attributes, report_copied};
use crate::file_stat::FileStat;
use crate::metadata::keep_old_attributes;
use crate::open_target::{OpenTarget, creation_mode, discard, open_target};
use crate::options::{CopyOptions, Tristate};
use crate::target::quoted;
use crate::verify::{VerifyJob, verify};

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
    copy_to_file(context, worker, entry, source.as_fd(), stat, true)
}

/// Copies an open stream into a file, which is removed if it is new and the copy fails. A stream that has a name gives the copy its
/// mode and the attributes that are preserved.
pub(crate) fn copy_to_file(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    source: BorrowedFd<'_>,
    stat: &FileStat,
    has_name: bool,
) -> CopyResult<()> {
    let is_file = stat.kind() == FileType::RegularFile;
    let mode = if is_file || has_name { creation_mode(context, stat) } else { 0o666 };
    let is_whole_file = is_file && tell(source) == Ok(0);
    refuse_promises(context.options, &entry.source_path(), is_whole_file)?;
    let Some(mut target) = open_target(context, worker, entry, stat, mode)? else { return Ok(()) };
    let backup = target.backup.take();
    let name = target.temporary.as_deref().unwrap_or(entry.target);
    let unfinished = target.is_new.then(|| entry.with_target(name).target_path());
    if let Some(path) = &unfinished {
        context.control.begin_target(path.clone());
    }
    let copied = match is_whole_file && !target.is_stream {
        true => copy_whole_file(context, worker, entry, source, stat, &mut target),
        false => {
            let (source_path, target_path) = (entry.source_path(), entry.target_path());
            let makes_holes = context.options.sparse == Tristate::Always && !target.is_stream;
            pump(context, worker, (source, &source_path), (target.file.as_fd(), &target_path), makes_holes)
        }
    };
    let finished = copied.and_then(|bytes| {
        keep_old_attributes(context, entry, &target)?;
        if has_name {
            preserve_attributes(context, worker, entry, source, stat, &target)?;
        }
        commit(context, worker, entry, &target, bytes)
    });
    if let Some(path) = &unfinished {
        context.control.end_target(path);
    }
    if let Err(error) = finished {
        return Err(discard(context, entry, &target, error));
    }
    report_copied(context, entry, backup);
    Ok(())
}

/// Fails if an option needs a property that a stream as the source does not have.
fn refuse_promises(options: &CopyOptions, source: &Path, is_whole_file: bool) -> CopyResult<()> {
    for (is_asked, option) in [(options.verify, "--verify"), (options.resume, "--resume")] {
        if is_asked {
            return Err(CopyError::Refused(format!(
                "{}: {option} cannot read a stream a second time: copy it to a file first",
                quoted(source)
            )));
        }
    }
    if options.reflink == Tristate::Always && !is_whole_file {
        return Err(CopyError::Refused(format!(
            "{}: --reflink=always cannot share the blocks of a stream: use --reflink=auto",
            quoted(source)
        )));
    }
    Ok(())
}

/// Fails if an option needs a property that a target which is no regular file does not have.
pub(crate) fn check_promises(options: &CopyOptions, target: &FileStat, path: &Path) -> CopyResult<()> {
    use FileType::{BlockDevice, CharacterDevice, Fifo, Socket};
    let kind = target.kind();
    if !matches!(kind, BlockDevice | CharacterDevice | Fifo | Socket) {
        return Ok(());
    }
    if options.verify && kind != BlockDevice {
        return Err(CopyError::Refused(format!(
            "{}: --verify needs a file or a block device, which can be read back: copy without --verify",
            quoted(path)
        )));
    }
    if options.reflink == Tristate::Always {
        return Err(CopyError::Refused(format!(
            "{} is no regular file, so that --reflink=always has no blocks to share: use --reflink=auto",
            quoted(path)
        )));
    }
    Ok(())
}

/// Copies a file that another process opened, such as standard input, with its holes. Moves its file offset to the end, or to the
/// beginning if the copy fails.
fn copy_whole_file(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    source: BorrowedFd<'_>,
    stat: &FileStat,
    target: &mut OpenTarget,
) -> CopyResult<u64> {
    context.control.add_total(stat.size);
    let copied = fill_with_engine(context, worker, entry, source, stat, target);
    let end = copied.as_ref().map_or(0, |bytes| *bytes);
    let moved = seek(source, SeekFrom::Start(end)).on(entry.source_path(), "lseek");
    let bytes = copied?;
    moved?;
    worker.tally.files += 1;
    context.control.add_file();
    Ok(bytes)
}

/// Writes a file into a FIFO, a terminal or a device: all bytes in their order, without offsets. Compares them, if asked. Returns
/// their number.
pub(crate) fn fill_stream(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    source: BorrowedFd<'_>,
    stat: &FileStat,
    target: &OpenTarget,
) -> CopyResult<u64> {
    let (source_path, target_path) = (entry.source_path(), entry.target_path());
    let job = StreamJob {
        source,
        source_path: &source_path,
        target: target.file.as_fd(),
        target_path: &target_path,
        source_is_pipe: false,
        chunk: context.options.buffer_bytes.unwrap_or(BUFFER_BYTES),
        makes_holes: false,
    };
    let (options, control) = (context.options, context.control);
    let copied = copy_stream(&job, options.method, control, &mut worker.buffer, &mut worker.tally);
    let copied = copied.map_err(|error| on_full_device(error, job.target, &target_path))?;
    count(worker, copied.method, copied.bytes, 0);
    if options.verify {
        let device_bytes = Some(copied.bytes);
        let (source_path, target_path) = (source_path.as_path(), target_path.as_path());
        let files = VerifyJob { source, source_path, stat, target: job.target, target_path, device_bytes };
        let mut result = ContentResult::complete(copied.method, copied.bytes, 0);
        result.verified = Some(verify(&files, control, &mut worker.tally)?);
        context.reporter.content(source_path, target_path, &result);
    }
    Ok(copied.bytes)
}

/// Says of a block device that has no space left that it is too small: nothing on it can be freed.
fn on_full_device(error: CopyError, target: BorrowedFd<'_>, path: &Path) -> CopyError {
    let is_device = || fstat(target).is_ok_and(|stat| FileStat::from(stat).kind() == FileType::BlockDevice);
    if error.errno() != Some(libc::ENOSPC) || !is_device() {
        return error;
    }
    let bytes = tell(target).unwrap_or_default();
    CopyError::Refused(format!(
        "{}: write: {} – the device is smaller than the source: its first {bytes} bytes are overwritten, and the rest of the \
         source is not copied; use a larger device",
        quoted(path),
        errno_text(&Errno::NOSPC.into())
    ))
}

/// Moves all bytes of one descriptor to another, each with its name for messages. Returns their number.
pub(crate) fn pump(
    context: &Context,
    worker: &mut Worker,
    (source, source_path): (BorrowedFd<'_>, &Path),
    (target, target_path): (BorrowedFd<'_>, &Path),
    makes_holes: bool,
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
        makes_holes,
    };
    let (options, control) = (context.options, context.control);
    let result = copy_stream(&job, options.method, control, &mut worker.buffer, &mut worker.tally);
    let result = result.map_err(|error| on_full_device(error, target, target_path))?;
    count(worker, result.method, result.bytes, result.hole_bytes);
    worker.tally.files += 1;
    control.add_file();
    Ok(result.bytes)
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
