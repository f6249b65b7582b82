//! The result of stat(2), with the same types on every architecture.

use rustix::fs::{FileType, Stat};

/// The facts that stat(2) gives about a file.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct FileStat {
    pub dev: u64,
    pub ino: u64,
    pub mode: u32,
    pub links: u64,
    pub uid: u32,
    pub gid: u32,
    pub rdev: u64,
    pub size: u64,
    /// Allocated space in bytes.
    pub allocated: u64,
    /// Seconds since 1970, and nanoseconds of the second that has begun.
    pub accessed: (i64, i64),
    pub modified: (i64, i64),
    pub changed: (i64, i64),
}

impl FileStat {
    /// Returns device and inode number, which identify a file.
    pub fn id(&self) -> (u64, u64) {
        (self.dev, self.ino)
    }

    /// Returns the type of the file.
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    /// Returns the permissions, with the set-ID bits and the sticky bit.
    pub fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }

    /// Returns whether the file may have holes.
    pub fn may_have_holes(&self) -> bool {
        self.allocated < self.size
    }
}

impl From<Stat> for FileStat {
    #[allow(clippy::unnecessary_cast)] // the types of some fields differ between architectures
    fn from(stat: Stat) -> Self {
        Self {
            dev: stat.st_dev as u64,
            ino: stat.st_ino as u64,
            mode: stat.st_mode as u32,
            links: stat.st_nlink as u64,
            uid: stat.st_uid as u32,
            gid: stat.st_gid as u32,
            rdev: stat.st_rdev as u64,
            size: stat.st_size as u64,
            allocated: stat.st_blocks as u64 * 512,
            accessed: (stat.st_atime as i64, stat.st_atime_nsec as i64),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }
}
