//! The answers of the child that reads files for weir.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{MemfdFlags, Statx, memfd_create};

use super::channel::DATA_BYTES;
use crate::{cached_paths, mount_table};

/// The most bytes that are copied of a file whose server could stop to answer: more than any executable has in its parts
/// that weir reads.
const MAX_COPIED: u64 = 256 << 20;

/// A question about memory or a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum Operation {
    Memory,
    WriteMemory,
    Status,
    Canonicalize,
    Beginning,
    Names,
    Open,
}

const ALL: [Operation; 7] = [
    Operation::Memory,
    Operation::WriteMemory,
    Operation::Status,
    Operation::Canonicalize,
    Operation::Beginning,
    Operation::Names,
    Operation::Open,
];

/// The result of stat(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FileStatus {
    pub dev: u64,
    pub ino: u64,
    /// As st_mode of stat(2): type and permissions.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
    /// The size of a block for efficient reads and writes.
    pub block_bytes: u64,
    /// The last change of the content: seconds and nanoseconds.
    pub changed: (i64, i64),
    /// The last change of the content or the inode.
    pub inode_changed: (i64, i64),
}

impl FileStatus {
    /// Returns the status in the result of stat(2).
    pub(crate) fn of(about: &fs::Metadata) -> FileStatus {
        FileStatus {
            dev: about.dev(),
            ino: about.ino(),
            mode: about.mode(),
            uid: about.uid(),
            gid: about.gid(),
            size: about.size(),
            block_bytes: about.blksize(),
            changed: (about.mtime(), about.mtime_nsec()),
            inode_changed: (about.ctime(), about.ctime_nsec()),
        }
    }

    /// Returns the status in the result of statx(2).
    pub(crate) fn of_statx(about: &Statx) -> FileStatus {
        let time = |time: rustix::fs::StatxTimestamp| (time.tv_sec, i64::from(time.tv_nsec));
        FileStatus {
            dev: rustix::fs::makedev(about.stx_dev_major, about.stx_dev_minor),
            ino: about.stx_ino,
            mode: about.stx_mode.into(),
            uid: about.stx_uid,
            gid: about.stx_gid,
            size: about.stx_size,
            block_bytes: about.stx_blksize.into(),
            changed: time(about.stx_mtime),
            inode_changed: time(about.stx_ctime),
        }
    }

    /// Returns whether the file is a regular one.
    pub fn is_file(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFREG
    }

    fn encode(&self) -> Vec<u8> {
        let (changed, inode_changed) = (self.changed, self.inode_changed);
        let numbers = [self.mode, self.uid, self.gid].map(u64::from);
        let times = [changed.0, changed.1, inode_changed.0, inode_changed.1].map(|time| time as u64);
        let words = [self.dev, self.ino, self.size, self.block_bytes].into_iter().chain(numbers).chain(times);
        words.flat_map(u64::to_le_bytes).collect()
    }

    /// Returns the status that [`Self::encode`] wrote.
    pub(crate) fn decode(bytes: &[u8]) -> Option<FileStatus> {
        let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let words: [u64; 11] = words.collect::<Vec<_>>().try_into().ok()?;
        let [dev, ino, size, block_bytes, mode, uid, gid, ..] = words;
        let time = |at: usize| (words[at] as i64, words[at + 1] as i64);
        let [mode, uid, gid] = [mode, uid, gid].map(|number| number as u32);
        let (changed, inode_changed) = (time(7), time(9));
        Some(FileStatus { dev, ino, mode, uid, gid, size, block_bytes, changed, inode_changed })
    }
}

impl Operation {
    /// Returns the operation of a number in a request.
    pub fn of(number: u32) -> Option<Operation> {
        ALL.get(number as usize).copied()
    }

    /// Returns the number in a request.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// Returns the answer about a path, and the opened file of [`Operation::Open`].
    pub fn answer(self, path: &Path, word: u64) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
        let bytes = match self {
            Operation::Memory | Operation::WriteMemory => return Err(io::ErrorKind::InvalidInput.into()),
            Operation::Status => {
                let about = if word != 0 { fs::metadata(path) } else { fs::symlink_metadata(path) };
                FileStatus::of(&about?).encode()
            }
            Operation::Canonicalize => fs::canonicalize(path)?.into_os_string().into_vec(),
            Operation::Beginning => {
                let mut bytes = Vec::new();
                // If the process ends meanwhile, the part that was read is still correct.
                let _part = File::open(path)?.take(word).read_to_end(&mut bytes);
                bytes
            }
            Operation::Names => names(path, word as usize)?,
            Operation::Open => {
                let (file, status) = open_regular(path)?;
                return Ok((status.encode(), Some(file.into())));
            }
        };
        Ok((bytes, None))
    }
}

/// Returns a byte that is 1 if there are too many names, and the names, each followed by NUL.
fn names(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0];
    for (at, entry) in fs::read_dir(path)?.enumerate() {
        bytes.extend_from_slice(entry?.file_name().as_bytes());
        bytes.push(0);
        if at >= most || bytes.len() > DATA_BYTES {
            return Ok(vec![1]);
        }
    }
    Ok(bytes)
}

/// Opens a regular file, or copies its bytes if a server answers for it.
fn open_regular(path: &Path) -> io::Result<(File, FileStatus)> {
    let found = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)?;
    let file = cached_paths::open_regular(found.into())?;
    let status = FileStatus::of(&file.metadata()?);
    if is_local(&file, status.dev) {
        return Ok((file, status));
    }
    let mut copy = File::from(memfd_create("weir-copy", MemfdFlags::CLOEXEC)?);
    io::copy(&mut file.take(MAX_COPIED), &mut copy)?;
    io::Seek::rewind(&mut copy)?;
    Ok((copy, status))
}

/// Returns whether the kernel alone answers for a file. The layers of an overlay can be served, so an overlay counts only if
/// it is one of weir's own mounts: no other user can make those.
fn is_local(file: &File, dev: u64) -> bool {
    /// linux/magic.h, and the sources of bcachefs and zfs.
    const LOCAL: [u32; 14] = [
        0xef53,      // ext2, ext3, ext4
        0x5846_5342, // xfs
        0x9123_683e, // btrfs
        0x0102_1994, // tmpfs
        0x8584_58f6, // ramfs
        0xf2f5_2010, // f2fs
        0x4d44,      // vfat
        0x2011_bab0, // exfat
        0x7371_7368, // squashfs
        0xe0f5_e1e2, // erofs
        0x9660,      // iso9660
        0xca45_1a4e, // bcachefs
        0x2fc1_2fc1, // zfs
        0x9584_58f6, // hugetlbfs
    ];
    const OVERLAY: u32 = 0x794c_7630;
    match rustix::fs::fstatfs(file).map(|about| about.f_type as u32) {
        Ok(OVERLAY) => is_own_mount(dev),
        Ok(magic) => LOCAL.contains(&magic),
        Err(_) => false,
    }
}

/// Returns whether a device number is that of a mount in weir's own mount namespace.
fn is_own_mount(dev: u64) -> bool {
    static KNOWN: Mutex<Option<HashSet<(u32, u32)>>> = Mutex::new(None);
    let device = (rustix::fs::major(dev), rustix::fs::minor(dev));
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_with(|| {
        let mounts = mount_table::of_process("self").unwrap_or_default();
        mounts.into_iter().map(|mount| mount.device).collect()
    });
    known.contains(&device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_decoded_as_it_was() {
        let about = fs::metadata("/proc/self/exe").expect("this program");
        let status = FileStatus::of(&about);
        assert_eq!(FileStatus::decode(&status.encode()), Some(status));
        assert!(status.is_file());
        assert_eq!(FileStatus::decode(&[1, 2]), None);
    }

    #[test]
    fn numbers_name_operations() {
        assert!(ALL.iter().all(|one| Operation::of(one.number()) == Some(*one)));
        assert_eq!(Operation::of(99), None);
    }
}
