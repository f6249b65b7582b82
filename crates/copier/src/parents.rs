//! `--parents`: the directories of a source's path are made in the target, with the attributes of the source's.

use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, fchmod, fstat, mkdir, open};
use rustix::io::Errno;

use crate::context::{Context, Worker};
use crate::durability::note_directory;
use crate::error::{CopyError, CopyResult, OnPath};
use crate::file_stat::FileStat;
use crate::metadata::{Attributes, TargetAttributes, set_attributes};
use crate::target::quoted;

/// Makes the directories of `source` in `target`. Returns the path of the copy.
pub(crate) fn make_parents(
    context: &Context,
    worker: &mut Worker,
    source: &Path,
    target: &Path,
) -> CopyResult<PathBuf> {
    let mut from = PathBuf::new();
    let mut to = target.to_path_buf();
    let relative = source.components().filter(|part| !matches!(part, Component::RootDir | Component::CurDir));
    if source.is_absolute() {
        from.push("/");
    }
    let parts: Vec<_> = relative.collect();
    let Some((last, folders)) = parts.split_last() else { return Ok(to) };
    for folder in folders {
        from.push(folder);
        to.push(folder);
        make_one(context, worker, &from, &to)?;
        note_directory(context, &to)?;
    }
    to.push(last);
    // A trailing slash keeps its meaning.
    if source.as_os_str().as_bytes().ends_with(b"/") {
        to.push("");
    }
    Ok(to)
}

fn make_one(context: &Context, worker: &mut Worker, from: &Path, to: &Path) -> CopyResult<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let source = open(from, flags, Mode::empty()).on(from, "open")?;
    let stat: FileStat = fstat(&source).on(from, "fstat")?.into();
    let mode = stat.permissions() & 0o777 & !context.identity.umask;
    match mkdir(to, Mode::from_raw_mode(mode | 0o700)) {
        Ok(()) => {}
        Err(Errno::EXIST) => return existing(to),
        Err(errno) => return Err(CopyError::call(to, "mkdir", errno)),
    }
    if context.options.verbose {
        context.reporter.copied(from, to, None);
    }
    worker.tally.directories += 1;
    let made = open(to, flags, Mode::empty()).on(to, "open")?;
    let attributes = Attributes {
        source: source.as_fd(),
        source_path: &|| from.into(),
        stat: &stat,
        target: made.as_fd(),
        target_path: &|| to.into(),
        has: TargetAttributes { owner: None, permissions: None, may_have_acl: true },
        is_directory: true,
    };
    set_attributes(context, &mut worker.tally, &attributes)?;
    if !context.options.preserved.mode && mode & 0o700 != 0o700 {
        fchmod(&made, Mode::from_raw_mode(mode | 0o700)).on(to, "fchmod")?;
    }
    Ok(())
}

fn existing(to: &Path) -> CopyResult<()> {
    match rustix::fs::stat(to).map(FileStat::from) {
        Ok(stat) if stat.kind() == rustix::fs::FileType::Directory => Ok(()),
        _ => Err(CopyError::Refused(format!("{} exists but is not a directory", quoted(to)))),
    }
}
