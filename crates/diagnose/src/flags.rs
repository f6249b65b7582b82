//! Flags, commands and error numbers of system calls, with the values of x86-64 and aarch64.

pub(crate) const O_WRONLY: i32 = 0o1;
pub(crate) const O_RDWR: i32 = 0o2;
pub(crate) const O_CREAT: i32 = 0o100;
pub(crate) const O_EXCL: i32 = 0o200;
pub(crate) const O_TRUNC: i32 = 0o1000;
/// The bit of O_TMPFILE that O_DIRECTORY does not have.
pub(crate) const O_TMPFILE: i32 = 0o20000000;
pub(crate) const O_DSYNC: i32 = 0o10000;
#[cfg(target_arch = "aarch64")]
pub(crate) const O_DIRECT: i32 = 0o200000;
#[cfg(not(target_arch = "aarch64"))]
pub(crate) const O_DIRECT: i32 = 0o40000;

/// RWF_DSYNC and RWF_SYNC, the sixth argument of pwritev2(2).
pub(crate) const RWF_SYNCS: u64 = 2 | 4;

pub(crate) const SEEK_SET: u64 = 0;
pub(crate) const SEEK_CUR: u64 = 1;
pub(crate) const SEEK_END: u64 = 2;

/// The second argument of fcntl(2) that sets a pipe's capacity.
pub(crate) const F_SETPIPE_SZ: u64 = 1031;

/// POSIX_FADV_RANDOM, the fourth argument of posix_fadvise(2).
pub(crate) const FADV_RANDOM: u64 = 1;

pub(crate) const EIO: i64 = 5;
pub(crate) const EBADF: i64 = 9;
pub(crate) const EINVAL: i64 = 22;
pub(crate) const EFBIG: i64 = 27;
pub(crate) const ENOSPC: i64 = 28;
pub(crate) const EPIPE: i64 = 32;
pub(crate) const EDQUOT: i64 = 122;
