//! Prices of ways to write, measured in one directory.

use serde::{Deserialize, Serialize};

/// Wall-clock and CPU time of a call in nanoseconds. The wall-clock time includes the wait for the device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct CallPrice {
    pub elapsed_ns: f64,
    pub cpu_ns: f64,
}

impl CallPrice {
    /// Returns the sum of `times` calls.
    pub fn times(self, times: f64) -> Self {
        Self { elapsed_ns: self.elapsed_ns * times, cpu_ns: self.cpu_ns * times }
    }

    /// Returns the sum of two prices.
    pub fn plus(self, other: Self) -> Self {
        Self { elapsed_ns: self.elapsed_ns + other.elapsed_ns, cpu_ns: self.cpu_ns + other.cpu_ns }
    }

    /// Returns the difference of two prices, at least 0.
    pub fn minus(self, other: Self) -> Self {
        let less = |one: f64, other: f64| (one - other).max(0.0);
        Self { elapsed_ns: less(self.elapsed_ns, other.elapsed_ns), cpu_ns: less(self.cpu_ns, other.cpu_ns) }
    }
}

/// The price of a record or call of a size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct SizedPrice {
    pub bytes: u64,
    #[serde(flatten)]
    pub price: CallPrice,
}

/// The price of a record if several threads write one file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct SharedPrice {
    pub writers: u32,
    #[serde(flatten)]
    pub price: CallPrice,
}

/// Prices of a directory. A list is ordered by size, and empty if the way does not work there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AdvicePrices {
    /// write(2) at the end of a file, by size of the call.
    pub write: Vec<SizedPrice>,
    /// Size of the buffer with which `stdio`, `libweir` and `io_uring` were measured.
    pub buffer_bytes: u64,
    /// A record through stdio, with its share of the writes of the buffer.
    pub stdio: Vec<SizedPrice>,
    /// A record through weir_write(3) of libweir, likewise.
    pub libweir: Vec<SizedPrice>,
    /// A record stored into a shared mapping.
    pub mmap: Vec<SizedPrice>,
    /// A block written with O_DIRECT.
    pub direct: Vec<SizedPrice>,
    /// A block written by io_uring(7).
    pub io_uring: Vec<SizedPrice>,
    /// A record written with write(2) and synced with fdatasync(2).
    pub fdatasync: Option<CallPrice>,
    /// A record written to a file that is open with O_DSYNC.
    pub o_dsync: Option<CallPrice>,
    /// Size of the records with which `fdatasync` and `o_dsync` were measured.
    pub sync_record_bytes: u64,
    /// A block that is written and synced with fdatasync(2); unlike a short record it needs new blocks of the file system each
    /// time.
    #[serde(default)]
    pub fdatasync_block: Option<CallPrice>,
    /// A block that is written to a file that is open with O_DSYNC.
    #[serde(default)]
    pub o_dsync_block: Option<CallPrice>,
    /// Size of these blocks.
    #[serde(default)]
    pub sync_block_bytes: u64,
    /// Lowest and highest price of `fdatasync` in this and in earlier measurements, elapsed nanoseconds; `None` if not measured.
    #[serde(default)]
    pub fdatasync_range_ns: Option<[f64; 2]>,
    /// Size of the short calls of write(2) before the syncs of `sync_after_short`; each makes pages of its own in the page cache.
    #[serde(default)]
    pub short_write_bytes: u64,
    /// fdatasync(2) of so many new bytes, without the short calls of write(2) before it.
    #[serde(default)]
    pub sync_after_short: Vec<SizedPrice>,
    /// Size of the long calls of write(2) before the syncs of `sync_after_long`.
    #[serde(default)]
    pub long_write_bytes: u64,
    /// fdatasync(2) of so many new bytes, without the long calls of write(2) before it.
    #[serde(default)]
    pub sync_after_long: Vec<SizedPrice>,
    /// Bytes that the device got for one fdatasync(2) of a small record, with the file system's journal; `None` if the
    /// kernel does not count them.
    pub sync_device_bytes: Option<f64>,
    /// Bytes per second that the device takes in large writes with a sync at the end; `None` if not measured.
    pub device_bytes_per_s: Option<f64>,
    /// weir_putrec(3) of a short record with WEIR_THREADS, without its share of the writes.
    pub libweir_record_ns: f64,
    /// An uncontended lock and unlock of a mutex.
    pub lock_ns: f64,
    /// Price of the waits if several threads put records into a buffer behind a mutex without a pause, for each record; `None`
    /// if not measured, as for those below.
    #[serde(default)]
    pub shared_buffer: Option<CallPrice>,
    /// Price of these waits for write(2) of each record behind a mutex.
    #[serde(default)]
    pub shared_write: Option<CallPrice>,
    /// Price of these waits for weir_putrec(3) into a buffer.
    #[serde(default)]
    pub shared_libweir: Option<CallPrice>,
    /// Price of these waits for weir_putrec(3) that writes at once.
    #[serde(default)]
    pub shared_libweir_write: Option<CallPrice>,
    /// A record of `sync_record_bytes` that waits until it is synced, with one fdatasync(2) for all threads that wait: by the
    /// number of threads. Empty if not measured.
    #[serde(default)]
    pub group: Vec<SharedPrice>,
    /// The same through weir_putrec(3) and weir_sync(3).
    #[serde(default)]
    pub libweir_group: Vec<SharedPrice>,
    /// A record of `sync_record_bytes` with an fdatasync(2) of its own, while other threads do the same: the file system answers
    /// some of them together.
    #[serde(default)]
    pub shared_sync: Vec<SharedPrice>,
    /// CPU time of a timer that wakes a thread.
    pub wake_ns: f64,
    /// Share of the time of the measurement that it waited for a processor, 0 to 1; `None` if the kernel does not count it.
    #[serde(default)]
    pub cpu_wait_share: Option<f64>,
}

impl AdvicePrices {
    /// Share from which on the prices are too high to choose by: elapsed times are longer by a quarter.
    const BUSY: f64 = 0.2;

    /// Returns the share of the time that the measurement waited for a processor, if other processes made the prices too high.
    pub fn busy_share(&self) -> Option<f64> {
        self.cpu_wait_share.filter(|share| *share > Self::BUSY)
    }
}
