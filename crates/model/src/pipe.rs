//! The capacity of pipes, see pipe(7).

/// The default capacity: 16 pages of 4 KiB.
pub const DEFAULT_PIPE_BYTES: u64 = 65_536;

/// The default of /proc/sys/fs/pipe-max-size, the largest capacity that an unprivileged process can set.
pub const MAX_PIPE_BYTES: u64 = 1 << 20;
