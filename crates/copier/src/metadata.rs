//! Mode, owner, times, extended attributes and ACLs.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags, chownat, fchmod, fchown, fgetxattr,
    flistxattr, fremovexattr, fsetxattr, fstat, futimens, utimensat,
};
use rustix::io::Errno;

use crate::context::Context;
use crate::entry::Entry;
use crate::error::{CopyResult, OnPath};
use crate::file_stat::FileStat;
use crate::open_target::OpenTarget;
use crate::tally::CopyTally;

const ACCESS_ACL: &CStr = c"system.posix_acl_access";
const DEFAULT_ACL: &CStr = c"system.posix_acl_default";
const SELINUX: &[u8] = b"security.selinux";
/// Names, or their beginnings, of attributes that are no data of the user: XFS shows its ACLs and file attributes as such, IMA's
/// checksum is written by the kernel only, AFS shows its own state. libattr leaves the same out (/etc/xattr.conf).
const OF_THE_FILE_SYSTEM: [&[u8]; 4] = [b"system.", b"trusted.SGI_", b"security.evm", b"afs."];
/// The most bytes of a value or a list: `XATTR_SIZE_MAX` (linux/limits.h).
const VALUE_BYTES: usize = 64 << 10;

/// An open copy and the source of its attributes.
pub(crate) struct Attributes<'a> {
    pub source: BorrowedFd<'a>,
    pub source_path: &'a dyn Fn() -> std::path::PathBuf,
    pub stat: &'a FileStat,
    pub target: BorrowedFd<'a>,
    pub target_path: &'a dyn Fn() -> std::path::PathBuf,
    /// The owner, group and permissions that the target has now.
    pub has: TargetAttributes,
    pub is_directory: bool,
}

/// The attributes of a target that was created or found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetAttributes {
    /// None if a new file may have another owner than the process, for example on a network.
    pub owner: Option<(u32, u32)>,
    /// None if they are not known for certain.
    pub permissions: Option<u32>,
    pub may_have_acl: bool,
}

/// Gives the copy the attributes that the options preserve, in cp's order: owner, extended attributes, mode, times.
pub(crate) fn set_attributes(context: &Context, tally: &mut CopyTally, of: &Attributes) -> CopyResult<()> {
    let wanted = context.options.preserved;
    let mut permissions = of.has.permissions;
    let mut lost_owner = false;
    if wanted.owner && of.has.owner != Some((of.stat.uid, of.stat.gid)) {
        lost_owner = !set_owner(of, tally)?;
        // chown(2) clears the set-ID bits.
        permissions = None;
    }
    let mut acl = None;
    if wanted.xattr || wanted.mode {
        acl = copy_xattrs(context, of, tally)?;
    }
    if wanted.mode {
        let mut mode = of.stat.permissions();
        if lost_owner {
            // A set-ID bit would then work for another user.
            mode &= !0o6000;
        }
        if permissions != Some(mode) || acl.is_some() || of.has.may_have_acl {
            if acl.is_none() && of.has.may_have_acl {
                let _absent = fremovexattr(of.target, ACCESS_ACL);
            }
            fchmod(of.target, Mode::from_raw_mode(mode)).on((of.target_path)(), "fchmod")?;
        }
        if let Some(acl) = acl
            && let Err(errno) = fsetxattr(of.target, ACCESS_ACL, &acl, XattrFlags::empty())
        {
            tolerate(of, errno, "setxattr", false, tally)?;
        }
    }
    if wanted.times {
        futimens(of.target, &times(of.stat)).on((of.target_path)(), "futimens")?;
    }
    Ok(())
}

/// A temporary file that replaces another one takes its owner and permissions, as if the other one had been overwritten.
pub(crate) fn keep_old_attributes(context: &Context, entry: &Entry, target: &OpenTarget) -> CopyResult<()> {
    let Some(old) = target.replaced else { return Ok(()) };
    let has_old_owner = || -> CopyResult<bool> {
        let now: FileStat = fstat(&target.file).on(entry.target_path(), "fstat")?.into();
        Ok((old.uid, old.gid) == (now.uid, now.gid))
    };
    let mut keeps_owner = has_old_owner()?;
    if !keeps_owner {
        // Users other than root may not give the file away; it is then theirs.
        let _tried = fchown(&target.file, Some(Uid::from_raw(old.uid)), Some(Gid::from_raw(old.gid)));
        keeps_owner = has_old_owner()?;
    }
    if !context.options.preserved.mode {
        // A set-ID bit would otherwise work for another user.
        let mode = if keeps_owner { old.permissions() } else { old.permissions() & !0o6000 };
        fchmod(&target.file, Mode::from_raw_mode(mode)).on(entry.target_path(), "fchmod")?;
    }
    Ok(())
}

/// Returns access and modification time for utimensat(2).
pub(crate) fn times(stat: &FileStat) -> Timestamps {
    let of = |(seconds, nanoseconds): (i64, i64)| Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    Timestamps { last_access: of(stat.accessed), last_modification: of(stat.modified) }
}

/// Sets owner and group, or at least the group. Returns whether the owner is set: users other than root may not give files
/// away, which is no error (as with cp).
fn set_owner(of: &Attributes, tally: &mut CopyTally) -> CopyResult<bool> {
    let (uid, gid) = (Uid::from_raw(of.stat.uid), Gid::from_raw(of.stat.gid));
    match fchown(of.target, Some(uid), Some(gid)) {
        Ok(()) => Ok(true),
        Err(Errno::PERM | Errno::INVAL) => {
            let _tried = fchown(of.target, None, Some(gid));
            tally.dropped_attributes += 1;
            Ok(false)
        }
        Err(errno) => Err(errno).on((of.target_path)(), "fchown"),
    }
}

/// Copies extended attributes. Returns the access ACL of the source, which is set after the mode.
fn copy_xattrs(context: &Context, of: &Attributes, tally: &mut CopyTally) -> CopyResult<Option<Vec<u8>>> {
    let wanted = context.options.preserved;
    let mut names = [0; 1024];
    let mut long_names;
    let names: &[u8] = match flistxattr(of.source, &mut names[..]) {
        Ok(0) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(None),
        Ok(bytes) => &names[..bytes],
        Err(Errno::RANGE) => {
            long_names = vec![0; VALUE_BYTES];
            let bytes = flistxattr(of.source, &mut long_names[..]).on((of.source_path)(), "listxattr")?;
            &long_names[..bytes]
        }
        Err(errno) => return Err(errno).on((of.source_path)(), "listxattr"),
    };
    let mut access = None;
    for name in names.split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        let is_acl = name == ACCESS_ACL || name == DEFAULT_ACL;
        let bytes = name.to_bytes();
        let is_wanted = match () {
            () if is_acl => wanted.mode,
            () if bytes == SELINUX => wanted.context,
            () => wanted.xattr && !OF_THE_FILE_SYSTEM.iter().any(|begin| bytes.starts_with(begin)),
        };
        if !is_wanted || (name == DEFAULT_ACL && !of.is_directory) {
            continue;
        }
        let mut value = vec![0; VALUE_BYTES];
        match fgetxattr(of.source, name, &mut value[..]) {
            Ok(bytes) => value.truncate(bytes),
            // It was removed meanwhile, or only root may read it.
            Err(Errno::NODATA | Errno::PERM | Errno::ACCESS) => continue,
            Err(errno) => return Err(errno).on((of.source_path)(), "getxattr"),
        }
        if name == ACCESS_ACL {
            access = Some(value);
        } else if let Err(errno) = fsetxattr(of.target, name, &value, XattrFlags::empty()) {
            tolerate(of, errno, "setxattr", wanted.xattr_required && !is_acl, tally)?;
        }
    }
    Ok(access)
}

/// Counts an attribute that the target cannot keep. Fails if the user demanded it, or with another error.
fn tolerate(
    of: &Attributes,
    errno: Errno,
    call: &'static str,
    is_required: bool,
    tally: &mut CopyTally,
) -> CopyResult<()> {
    if is_required || ![Errno::OPNOTSUPP, Errno::PERM, Errno::INVAL, Errno::NOSYS].contains(&errno) {
        return Err(errno).on((of.target_path)(), call);
    }
    tally.dropped_attributes += 1;
    Ok(())
}

/// Gives a symbolic link, a FIFO, a socket or a device node owner, mode and times, by its name.
pub(crate) fn set_attributes_by_name(
    context: &Context,
    tally: &mut CopyTally,
    entry: &Entry,
    stat: &FileStat,
) -> CopyResult<()> {
    let wanted = context.options.preserved;
    let (dir, name) = (entry.target_dir(), entry.target);
    let is_link = stat.kind() == rustix::fs::FileType::Symlink;
    if wanted.owner && (stat.uid, stat.gid) != (context.identity.uid, context.identity.gid) {
        let (uid, gid) = (Uid::from_raw(stat.uid), Gid::from_raw(stat.gid));
        match chownat(dir, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(()) => {}
            Err(Errno::PERM | Errno::INVAL) => tally.dropped_attributes += 1,
            Err(errno) => return Err(errno).on(entry.target_path(), "chown"),
        }
    }
    if wanted.mode && !is_link && stat.permissions() & 0o7000 != 0 {
        rustix::fs::chmodat(dir, name, Mode::from_raw_mode(stat.permissions()), AtFlags::empty())
            .on(entry.target_path(), "chmod")?;
    }
    if wanted.times {
        match utimensat(dir, name, &times(stat), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(()) | Err(Errno::NOSYS) => {}
            Err(errno) => return Err(errno).on(entry.target_path(), "utimensat"),
        }
    }
    Ok(())
}

/// Returns whether a directory has a default ACL.
pub(crate) fn has_default_acl(directory: BorrowedFd<'_>) -> bool {
    fgetxattr(directory, DEFAULT_ACL, &mut [0_u8; 0][..]).is_ok_and(|bytes| bytes > 0)
}

/// As [`has_default_acl`], of the directory of an operand.
pub(crate) fn parent_has_default_acl(target: &Path) -> bool {
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    rustix::fs::getxattr(parent, DEFAULT_ACL, &mut [0_u8; 0][..]).is_ok_and(|bytes| bytes > 0)
}
