//! Opens the target of a regular file: a new file, an existing one, or a temporary one beside it; removes it after a failure.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::{AtFlags, FileType, fstat, unlinkat};
use rustix::io::Errno;
use weir_sys::errno_text;

use crate::context::{Context, Worker};
use crate::entry::Entry;
use crate::error::{CopyError, CopyResult, OnPath};
use crate::file_stat::FileStat;
use crate::journal::Journal;
use crate::resume::is_resumable;
use crate::stream_file::{check_device, check_promises};
use crate::target::{TargetState, behind_link, create_new, open_existing, prepare_target, quoted};
use crate::undivided::create_undivided;

/// An open target whose content is not complete.
pub(crate) struct OpenTarget {
    pub file: OwnedFd,
    /// weir made the file, and removes it after a failure.
    pub is_new: bool,
    /// The name that the file has until it is complete.
    pub temporary: Option<CString>,
    /// The target, if it is not the entry's: the file that a symbolic link names.
    pub renamed_to: Option<CString>,
    pub backup: Option<PathBuf>,
    /// The target is a FIFO, a terminal or a device: it has no holes and perhaps no offsets.
    pub is_stream: bool,
    /// The permissions with which the file was created.
    pub created_mode: Option<u32>,
    /// The file that the temporary one replaces.
    pub replaced: Option<FileStat>,
    /// `--resume`: the temporary file stays after a failure, and the journal lists the parts in it.
    pub journal: Option<Journal>,
}

/// Opens the target; creates it with the permissions `mode` less the mask. Returns None if an existing one is kept.
pub(crate) fn open_target(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    stat: &FileStat,
    mode: u32,
) -> CopyResult<Option<OpenTarget>> {
    let new = |file, backup| OpenTarget {
        file,
        is_new: true,
        temporary: None,
        renamed_to: None,
        backup,
        is_stream: false,
        created_mode: Some(mode),
        replaced: None,
        journal: None,
    };
    if !context.options.atomic {
        match create_new(entry, mode) {
            Ok(file) => return Ok(Some(new(file, None))),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(CopyError::creation(entry.target_path(), "open", errno)),
        }
    }
    match prepare_target(context, worker, entry, stat)? {
        TargetState::Keep => Ok(None),
        TargetState::Present { stat, .. } if !may_write(context, entry, &stat)? => Err(not_replaced(entry)),
        state if context.options.atomic => open_temporary(context, entry, state, stat, mode).map(Some),
        TargetState::Absent { backup } => {
            let file = create_new(entry, mode).on_creation(entry.target_path(), "open")?;
            Ok(Some(new(file, backup)))
        }
        TargetState::Present { stat, is_link } => {
            let (file, is_new) = open_existing(context, entry, is_link, mode)?;
            let created_mode = is_new.then_some(mode);
            let is_stream = !is_new && stat.kind() != FileType::RegularFile;
            Ok(Some(OpenTarget { is_new, is_stream, created_mode, ..new(file, None) }))
        }
    }
}

/// Returns false for a device, a FIFO or a socket that `--atomic` would replace by a file. Fails for a device that was not
/// asked for.
fn may_write(context: &Context, entry: &Entry, target: &FileStat) -> CopyResult<bool> {
    check_device(context, target, &entry.target_path())?;
    check_promises(context.options, target, &entry.target_path())?;
    Ok(!context.options.atomic || target.kind() == FileType::RegularFile)
}

fn not_replaced(entry: &Entry) -> CopyError {
    CopyError::Refused(format!(
        "{} is no regular file: --atomic would replace it by one – copy without --atomic",
        quoted(&entry.target_path())
    ))
}

/// Says that an incomplete file stays for the next run.
fn kept(context: &Context, entry: &Entry, name: &CStr, error: &CopyError) -> CopyError {
    // The directory exists by now: without -T the next copy would go into it.
    let option = if context.names_root && !entry.is_operand() { " with -T" } else { "" };
    CopyError::Refused(format!(
        "{} – what is copied of {} stays in {}: the same command{option} continues it",
        reason(error),
        quoted(&entry.target_path()),
        quoted(&entry.with_target(name).target_path())
    ))
}

/// Returns why a copy is incomplete.
fn reason(error: &CopyError) -> String {
    if matches!(error, CopyError::Interrupted) { "stopped".into() } else { error.to_string() }
}

/// Opens a temporary file beside the target.
fn open_temporary(
    context: &Context,
    entry: &Entry,
    state: TargetState,
    source: &FileStat,
    mode: u32,
) -> CopyResult<OpenTarget> {
    let (backup, replaced, renamed_to) = match state {
        TargetState::Present { stat, is_link } => {
            (None, Some(stat), is_link.then(|| behind_link(entry)).transpose()?)
        }
        TargetState::Absent { backup } => (backup, None, None),
        TargetState::Keep => (None, None, None),
    };
    let target = renamed_to.as_deref().unwrap_or(entry.target);
    let (file, temporary, journal, created_mode) = if is_resumable(context.options, source) {
        let (file, temporary, journal) = Journal::open(context, entry, target, source)?;
        // It was created for its owner only; `resume` sets the mode when it is complete.
        (file, temporary, Some(journal), None)
    } else if context.options.resume {
        let (file, temporary) = create_undivided(context, entry, target, mode)?;
        (file, temporary, None, Some(mode))
    } else {
        let temporary = beside(target, &context.temporary_name());
        let file =
            create_new(&entry.with_target(&temporary), mode).on_creation(entry.target_path(), "open")?;
        (file, temporary, None, Some(mode))
    };
    let temporary = Some(temporary);
    Ok(OpenTarget {
        file,
        is_new: true,
        temporary,
        renamed_to,
        backup,
        is_stream: false,
        created_mode,
        replaced,
        journal,
    })
}

/// Returns the path of a file in the directory of `target`.
fn beside(target: &CStr, name: &CStr) -> CString {
    let folder = match target.to_bytes().iter().rposition(|byte| *byte == b'/') {
        Some(slash) => &target.to_bytes()[..=slash],
        None => &[],
    };
    CString::new([folder, name.to_bytes()].concat()).expect("no NUL byte in two C strings")
}

/// Returns the permissions with which the copy is created. If its owner will change, others must not read it before.
pub(crate) fn creation_mode(context: &Context, stat: &FileStat) -> u32 {
    let permissions = context.options.preserved.begin_mode(stat.permissions() & 0o777, 0o666);
    let owner_changes = context.options.preserved.owner
        && (stat.uid, stat.gid) != (context.identity.uid, context.identity.gid);
    if owner_changes { permissions & 0o700 } else { permissions }
}

/// Removes an incomplete target that weir has made. An older one was overwritten; the error then says so.
pub(crate) fn discard(context: &Context, entry: &Entry, target: &OpenTarget, error: CopyError) -> CopyError {
    if !target.is_new {
        // A device or a FIFO has no content that could be kept.
        let is_file =
            fstat(&target.file).is_ok_and(|stat| FileStat::from(stat).kind() == FileType::RegularFile);
        if !is_file {
            return error;
        }
        return CopyError::Refused(format!(
            "{} – {} is incomplete, and its old content is gone; --atomic keeps it",
            reason(&error),
            quoted(&entry.target_path())
        ));
    }
    let name = target.temporary.as_deref().unwrap_or(entry.target);
    if target.journal.is_some() {
        return kept(context, entry, name, &error);
    }
    // Another process may have put its own file there.
    let is_ours = || {
        let own = FileStat::from(fstat(&target.file).ok()?).id();
        Some(entry.with_target(name).target_stat(false).ok()?.id() == own)
    };
    if !is_ours().unwrap_or(false) {
        return error;
    }
    match unlinkat(entry.target_dir(), name, AtFlags::empty()) {
        Err(why) if !matches!(error, CopyError::Interrupted) => {
            not_removed(&entry.with_target(name), why, &error)
        }
        _ => error,
    }
}

/// Returns the error of a copy whose incomplete target is left, such as on a file system that an I/O error made read-only.
fn not_removed(entry: &Entry, why: Errno, error: &CopyError) -> CopyError {
    let why = errno_text(&why.into());
    CopyError::Refused(format!(
        "{error}; {} is incomplete and could not be removed: unlink: {why}",
        quoted(&entry.target_path())
    ))
}
