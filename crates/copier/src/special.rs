//! Copies symbolic links, FIFOs, sockets and device nodes, and makes links instead of copies (--link, --symbolic-link).

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, CWD, FileType, Mode, linkat, mknodat, readlinkat, symlinkat};
use rustix::io::Errno;

use crate::context::{Context, Worker};
use crate::durability::sync_operand_name;
use crate::entry::Entry;
use crate::error::{CopyError, CopyResult, OnPath};
use crate::file::{link_to, report_copied};
use crate::file_stat::FileStat;
use crate::links::FirstCopy;
use crate::metadata::set_attributes_by_name;
use crate::options::TargetKind;
use crate::target::{TargetState, prepare_target, quoted, remove_target};

/// Copies a symbolic link, a FIFO, a socket or a device node.
pub(crate) fn copy_special(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    stat: &FileStat,
) -> CopyResult<()> {
    let links = context.options.preserved.links && stat.links > 1;
    let slot = links.then(|| context.links.slot(stat.id()));
    let mut first = slot.as_ref().map(|slot| slot.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    if let Some(first) = first.as_deref().and_then(Option::as_ref) {
        return link_to(context, worker, entry, first, stat);
    }
    let made = match stat.kind() {
        FileType::Symlink => {
            let text = readlinkat(entry.source_dir(), entry.source, Vec::new())
                .on(entry.source_path(), "readlink")?;
            make(context, worker, entry, stat, "symlink", || {
                symlinkat(&text, entry.target_dir(), entry.target)
            })?
        }
        kind => {
            // As with a file, the mask applies unless the mode is preserved.
            let mode = context.options.preserved.begin_mode(stat.permissions() & 0o777, 0o666);
            let mode = Mode::from_raw_mode(mode);
            make(context, worker, entry, stat, "mknod", || {
                mknodat(entry.target_dir(), entry.target, kind, mode, stat.rdev)
            })?
        }
    };
    let Some(backup) = made else { return Ok(()) };
    set_attributes_by_name(context, &mut worker.tally, entry, stat)?;
    match stat.kind() {
        FileType::Symlink => worker.tally.symbolic_links += 1,
        _ => worker.tally.special_files += 1,
    }
    sync_operand_name(context, worker, entry)?;
    let copy = entry.target_stat(false).on(entry.target_path(), "stat");
    if let Some(first) = &mut first {
        **first = Some(FirstCopy { path: entry.target_path(), id: copy?.id() });
    } else {
        context.note_created(|| entry.target_stat(false).map_err(std::io::Error::from));
    }
    report_copied(context, entry, backup);
    Ok(())
}

/// Makes a file by `create`, which fails with EEXIST if the target exists. Returns None if an existing one is kept,
/// otherwise its backup.
fn make(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    stat: &FileStat,
    call: &'static str,
    create: impl Fn() -> Result<(), Errno>,
) -> CopyResult<Option<Option<PathBuf>>> {
    let mut backup = None;
    match create() {
        Err(Errno::EXIST) => {
            match prepare_target(context, worker, entry, stat)? {
                TargetState::Keep => return Ok(None),
                TargetState::Absent { backup: made } => backup = made,
                TargetState::Present { .. } if context.options.force => remove_target(entry)?,
                TargetState::Present { .. } => {
                    return Err(CopyError::call(entry.target_path(), call, Errno::EXIST));
                }
            }
            create().on_creation(entry.target_path(), call)?;
        }
        other => other.on_creation(entry.target_path(), call)?,
    }
    Ok(Some(backup))
}

/// Makes a hard or symbolic link to the source: `-l` and `-s`.
pub(crate) fn make_link(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    stat: &FileStat,
    follow: bool,
) -> CopyResult<()> {
    let made = if context.options.kind == TargetKind::HardLink {
        let flags = if follow { AtFlags::SYMLINK_FOLLOW } else { AtFlags::empty() };
        let link = || linkat(entry.source_dir(), entry.source, entry.target_dir(), entry.target, flags);
        make(context, worker, entry, stat, "link", link)?
    } else {
        let source = entry.source_path();
        let target = entry.target_path();
        if source.is_relative() && target.parent().is_some_and(|parent| !is_here(parent)) {
            return Err(CopyError::Refused(format!(
                "{}: weir makes relative symbolic links only in the current directory – give the source an absolute path",
                quoted(&target)
            )));
        }
        let text = CString::new(source.as_os_str().as_bytes())
            .map_err(std::io::Error::from)
            .on(&source, "symlink")?;
        make(context, worker, entry, stat, "symlink", || symlinkat(&text, entry.target_dir(), entry.target))?
    };
    let Some(backup) = made else { return Ok(()) };
    match context.options.kind {
        TargetKind::HardLink => worker.tally.hard_links += 1,
        _ => worker.tally.symbolic_links += 1,
    }
    sync_operand_name(context, worker, entry)?;
    report_copied(context, entry, backup);
    Ok(())
}

/// Returns whether a directory is the current one.
fn is_here(parent: &std::path::Path) -> bool {
    if parent.as_os_str().is_empty() {
        return true;
    }
    let id = |path: &std::path::Path| {
        rustix::fs::statat(CWD, path, AtFlags::empty()).map(|s| FileStat::from(s).id())
    };
    matches!((id(parent), id(std::path::Path::new("."))), (Ok(parent), Ok(here)) if parent == here)
}
