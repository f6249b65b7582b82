//! `--parents`: the directories of a source's path are made in the target, with the attributes of the source's.

use std::os::fd::{AsFd, OwnedFd};
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

/// A directory of a source's path and its copy, open.
pub(crate) struct ParentPair {
    source: OwnedFd,
    source_path: PathBuf,
    stat: FileStat,
    made: OwnedFd,
    made_path: PathBuf,
    is_new: bool,
}

/// Makes the directories of `source` in `target`. Returns the path of the copy, and the directories, which [`finish_parents`] gives
/// their attributes.
pub(crate) fn make_parents(
    context: &Context,
    worker: &mut Worker,
    source: &Path,
    target: &Path,
) -> CopyResult<(PathBuf, Vec<ParentPair>)> {
    let mut pairs = Vec::new();
    let mut from = PathBuf::new();
    let mut to = target.to_path_buf();
    let relative = source.components().filter(|part| !matches!(part, Component::RootDir | Component::CurDir));
    if source.is_absolute() {
        from.push("/");
    }
    let parts: Vec<_> = relative.collect();
    let Some((last, folders)) = parts.split_last() else { return Ok((to, pairs)) };
    for folder in folders {
        from.push(folder);
        to.push(folder);
        pairs.push(make_one(context, worker, &from, &to)?);
        note_directory(context, &to)?;
    }
    to.push(last);
    // A trailing slash keeps its meaning.
    if source.as_os_str().as_bytes().ends_with(b"/") {
        to.push("");
    }
    Ok((to, pairs))
}

fn make_one(context: &Context, worker: &mut Worker, from: &Path, to: &Path) -> CopyResult<ParentPair> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let source = open(from, flags, Mode::empty()).on(from, "open")?;
    let stat: FileStat = fstat(&source).on(from, "fstat")?.into();
    let mode = begin_mode(context, &stat) & !context.identity.umask;
    let is_new = match mkdir(to, Mode::from_raw_mode(mode | 0o700)) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(errno) => return Err(CopyError::creation(to, "mkdir", errno)),
    };
    if is_new {
        if context.options.verbose {
            context.reporter.copied(from, to, None);
        }
        worker.tally.directories += 1;
    }
    let made = match open(to, flags, Mode::empty()) {
        Err(Errno::NOTDIR) => {
            return Err(CopyError::Refused(format!("{} exists but is not a directory", quoted(to))));
        }
        made => made.on(to, "open")?,
    };
    Ok(ParentPair { source, source_path: from.into(), stat, made, made_path: to.into(), is_new })
}

fn begin_mode(context: &Context, stat: &FileStat) -> u32 {
    context.options.preserved.begin_mode(stat.permissions() & 0o777, 0o777)
}

/// Gives the directories their attributes, the deepest first, when the copy is in them. As with cp, those that existed get them
/// too.
pub(crate) fn finish_parents(context: &Context, worker: &mut Worker, pairs: &[ParentPair]) -> CopyResult<()> {
    let preserved = context.options.preserved;
    for pair in pairs.iter().rev() {
        let attributes = Attributes {
            source: pair.source.as_fd(),
            source_path: &|| pair.source_path.clone(),
            stat: &pair.stat,
            target: pair.made.as_fd(),
            target_path: &|| pair.made_path.clone(),
            has: TargetAttributes { owner: None, permissions: None, may_have_acl: true },
            is_directory: true,
        };
        set_attributes(context, &mut worker.tally, &attributes)?;
        let mode = begin_mode(context, &pair.stat) & !context.identity.umask;
        if pair.is_new && !preserved.mode && mode & 0o700 != 0o700 {
            fchmod(&pair.made, Mode::from_raw_mode(mode)).on(&pair.made_path, "fchmod")?;
        }
    }
    Ok(())
}
