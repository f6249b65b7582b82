//! Directories of a tree: opened in pairs, and given their attributes when everything in them is copied.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, RawDir, fchmod, fstat, mkdirat, openat};
use rustix::io::Errno;

use crate::context::{Context, Worker};
use crate::entry::{DirPair, Entry};
use crate::error::{CopyError, CopyResult, OnPath};
use crate::file::report_copied;
use crate::file_stat::FileStat;
use crate::metadata::{Attributes, TargetAttributes, has_default_acl, set_attributes};
use crate::options::CopySync;
use crate::target::quoted;

/// An entry of a directory. Its type is Unknown if the file system does not store it (d_type, getdents(2)).
pub(crate) struct DirItem {
    pub name: CString,
    pub kind: FileType,
    inode: u64,
}

/// Opens a source directory, and opens its target or makes it. Refuses it without `-r`, on a cycle of symbolic links, and if the
/// target is in the source. Adds the target to the sync ledger if a sync is requested.
pub(crate) fn open_directory(
    context: &Context,
    worker: &mut Worker,
    entry: &Entry,
    stat: &FileStat,
    follow: bool,
) -> CopyResult<Arc<DirPair>> {
    let options = context.options;
    if !options.recursive {
        return Err(CopyError::Refused(format!(
            "-r not specified; omitting directory {}",
            quoted(&entry.source_path())
        )));
    }
    let is_loop = ancestors(entry.dir).any(|dir| dir.source_stat.id() == stat.id());
    if is_loop {
        return Err(CopyError::Refused(format!(
            "cannot copy cyclic symbolic link {}",
            quoted(&entry.source_path())
        )));
    }
    if is_target_of_ancestor(entry, stat) {
        return Err(CopyError::Refused(format!(
            "cannot copy a directory, {}, into itself, {}",
            quoted(&entry.source_path()),
            quoted(&entry.target_path())
        )));
    }
    let mut flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    flags.set(OFlags::NOFOLLOW, !follow);
    let source =
        openat(entry.source_dir(), entry.source, flags, Mode::empty()).on(entry.source_path(), "open")?;
    let source_stat: FileStat = fstat(&source).on(entry.source_path(), "fstat")?.into();
    let (target, is_new) = make_target(context, entry, &source_stat)?;
    let target_stat: FileStat = fstat(&target).on(entry.target_path(), "fstat")?.into();
    if options.sync_level() != CopySync::None {
        context.ledger.note_directory(target_stat.dev, target.as_fd(), &entry.target_path())?;
    }
    worker.tally.directories += 1;
    if is_new {
        report_copied(context, entry, None);
    }
    Ok(Arc::new(DirPair {
        has_default_acl: has_default_acl(target.as_fd()),
        source,
        target,
        source_path: entry.source_path(),
        target_path: entry.target_path(),
        source_stat,
        target_stat,
        is_new,
        parent: entry.dir.cloned(),
    }))
}

fn ancestors(dir: Option<&Arc<DirPair>>) -> impl Iterator<Item = &Arc<DirPair>> {
    std::iter::successors(dir, |dir| dir.parent.as_ref())
}

/// Returns whether a source directory is the target of a directory above it: the tree would be copied for ever.
fn is_target_of_ancestor(entry: &Entry, stat: &FileStat) -> bool {
    ancestors(entry.dir).any(|dir| dir.target_stat.id() == stat.id())
}

/// Makes the target directory, writable for its owner until everything is in it. Returns it open, and whether it is new.
fn make_target(context: &Context, entry: &Entry, source: &FileStat) -> CopyResult<(OwnedFd, bool)> {
    // Before owner and mode are set, only the owner has access.
    let mode = initial_mode(context, source) | 0o700;
    let temporary_mode =
        if context.options.preserved.mode || context.options.preserved.owner { 0o700 } else { mode };
    let is_new = match mkdirat(entry.target_dir(), entry.target, Mode::from_raw_mode(temporary_mode)) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(errno) => return Err(CopyError::creation(entry.target_path(), "mkdir", errno)),
    };
    let mut flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // An operand may name a directory by a symbolic link; a link inside the tree is not followed.
    let follow = !is_new && (entry.is_operand() || context.options.keep_directory_symlink);
    flags.set(OFlags::NOFOLLOW, !follow);
    match openat(entry.target_dir(), entry.target, flags, Mode::empty()) {
        Ok(target) => Ok((target, is_new)),
        Err(Errno::NOTDIR | Errno::LOOP) => Err(CopyError::Refused(format!(
            "cannot overwrite non-directory {} with directory {}",
            quoted(&entry.target_path()),
            quoted(&entry.source_path())
        ))),
        Err(errno) => Err(CopyError::call(entry.target_path(), "open", errno)),
    }
}

/// Returns the mode of a new directory before its attributes are set, less the umask. mkdir(2) honours the sticky bit, and inherits
/// the set-group-ID bit of the parent.
fn initial_mode(context: &Context, source: &FileStat) -> u32 {
    let mode = context.options.preserved.begin_mode(source.permissions() & 0o1777, 0o777);
    mode & !context.identity.umask
}

/// Returns the entries of a directory by descending inode number. The callers take the last one first, so that they copy them in the
/// order in which many file systems store them.
pub(crate) fn read_directory(context: &Context, dir: &DirPair) -> CopyResult<Vec<DirItem>> {
    let mut buffer = [MaybeUninit::<u8>::uninit(); 32 << 10];
    let mut items = Vec::new();
    let mut entries = RawDir::new(&dir.source, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry.on(&dir.source_path, "getdents")?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            items.push(DirItem { name: name.to_owned(), kind: entry.file_type(), inode: entry.ino() });
        }
    }
    context.control.check()?;
    items.sort_unstable_by_key(|item| std::cmp::Reverse(item.inode));
    Ok(items)
}

/// Drops a reference to a directory. If it is the last one, everything in the directory is copied: sets the directory's attributes,
/// and drops its reference to the directory above. Reports errors.
pub(crate) fn release_directory(context: &Context, worker: &mut Worker, mut dir: Arc<DirPair>) {
    while let Some(mut pair) = Arc::into_inner(dir) {
        let parent = pair.parent.take();
        if let Err(error) = set_directory_attributes(context, worker, &pair) {
            context.report_error(worker, &error);
        }
        match parent {
            Some(parent) => dir = parent,
            None => return,
        }
    }
}

fn set_directory_attributes(context: &Context, worker: &mut Worker, pair: &DirPair) -> CopyResult<()> {
    let preserved = context.options.preserved;
    if preserved.mode || preserved.owner || preserved.times || preserved.xattr || preserved.context {
        let attributes = Attributes {
            source: pair.source.as_fd(),
            source_path: &|| pair.source_path.clone(),
            stat: &pair.source_stat,
            target: pair.target.as_fd(),
            target_path: &|| pair.target_path.clone(),
            has: TargetAttributes {
                owner: Some((pair.target_stat.uid, pair.target_stat.gid)),
                permissions: None,
                may_have_acl: pair.has_default_acl,
            },
            is_directory: true,
        };
        set_attributes(context, &mut worker.tally, &attributes)?;
    }
    // make_target has made it with another mode, so that its owner can write to it and nobody else can.
    let wanted = initial_mode(context, &pair.source_stat);
    let was_made_otherwise = preserved.owner || wanted & 0o700 != 0o700;
    if pair.is_new && !preserved.mode && was_made_otherwise {
        let now: FileStat = fstat(&pair.target).on(&pair.target_path, "fstat")?.into();
        let mode = (now.permissions() & !0o1777) | wanted;
        fchmod(&pair.target, Mode::from_raw_mode(mode)).on(&pair.target_path, "fchmod")?;
    }
    Ok(())
}
