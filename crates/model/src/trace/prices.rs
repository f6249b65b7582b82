//! Prices of calls and bytes on a machine, from which the gain of a fix is estimated.

use serde::{Deserialize, Serialize};

use crate::StreamKind;

/// Defines each price once: documentation, name and typical value.
macro_rules! prices {
    ($($(#[$about:meta])* $name:ident: $typical:expr,)*) => {
        /// Prices in nanoseconds, measured once for each machine and directory.
        #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
        pub struct Prices { $($(#[$about])* pub $name: f64,)* }

        /// Returns the prices measured on one x86-64 machine, for tests and for machines without a measurement.
        impl Default for Prices {
            fn default() -> Self {
                Self { $($name: $typical,)* }
            }
        }

        impl Prices {
            /// Combines several measurements: applies `pick` to the values of each price.
            pub fn of(measured: &[Self], pick: impl Fn(Vec<f64>) -> f64) -> Self {
                Self { $($name: pick(measured.iter().map(|one| one.$name).collect()),)* }
            }

            /// Returns the value of every price.
            pub fn values(&self) -> impl Iterator<Item = f64> {
                [$(self.$name),*].into_iter()
            }
        }
    };
}

prices! {
    /// read(2) of one byte of a file in the page cache.
    file_read_ns: 400.0,
    /// write(2) of one byte to a file.
    file_write_ns: 900.0,
    /// write(2) of 4 KiB at the end of a file, which allocates a page. 0 in recordings of older versions.
    #[serde(default)]
    page_write_ns: 3000.0,
    /// write(2) or read(2) of one byte on a pipe without a blocked peer.
    pipe_ns: 450.0,
    /// write(2) of one byte to /dev/null: the cost of entering the kernel.
    call_ns: 300.0,
    /// One byte of a large write(2) or read(2) on a file; the mean of both.
    byte_ns: 0.3,
    /// One byte that is read again: it is in the CPU's cache, and no page is allocated. 0 in recordings of older versions.
    #[serde(default)]
    again_byte_ns: 0.05,
    /// One byte of a large transfer through a pipe from one thread to another: on both sides, with their sleeps and wakes. 0 in
    /// recordings of older versions.
    #[serde(default)]
    piped_byte_ns: 0.6,
    /// fdatasync(2) after a small write.
    sync_ns: 600_000.0,
    /// One byte through a user-space buffer (unlocked stdio).
    buffered_byte_ns: 3.0,
    /// A write of one byte that a library takes in place of the kernel, and gathers. 0 in recordings of older versions.
    #[serde(default)]
    gathered_call_ns: 4.0,
    /// One byte of a gathered piece, which is copied. 0 in recordings of older versions.
    #[serde(default)]
    copied_byte_ns: 0.06,
    /// A signal that a thread sends to itself: the call, an empty handler, and the return. 0 in recordings of older versions.
    #[serde(default)]
    signal_ns: 700.0,
}

impl Prices {
    /// Returns the price of a small call on a kind of file.
    pub fn small_call_ns(&self, kind: StreamKind, writes: bool) -> f64 {
        match kind {
            StreamKind::File if writes => self.file_write_ns,
            StreamKind::File => self.file_read_ns,
            StreamKind::Pipe | StreamKind::Socket | StreamKind::Terminal => self.pipe_ns,
            StreamKind::Device | StreamKind::Other => self.call_ns,
        }
    }

    /// Returns the factor that fits the priced calls of a process to its CPU time in the kernel. Below 1: the prices are too
    /// high, because all calls together cannot cost more than that time. Above 1: the calls are many and explain most of
    /// the time, so they cost more than measured, on a busy machine or on this file.
    pub fn scale(priced_s: f64, system_s: f64, calls: u64) -> f64 {
        // The kernel may count CPU time in ticks: a shorter time is not significant.
        const TICK_S: f64 = 0.05;
        const MANY: u64 = 20_000;
        const MAX_SCALE: f64 = 3.0;
        if system_s <= TICK_S || priced_s <= 0.0 {
            return 1.0;
        }
        let scale = system_s / priced_s;
        match () {
            () if scale <= 1.0 => scale,
            () if calls < MANY => 1.0,
            () if scale <= MAX_SCALE => scale,
            // The longer the time, the smaller the part of these calls. The factor decreases steadily, so that equal runs
            // at a threshold do not differ.
            () => (MAX_SCALE * MAX_SCALE / scale).max(1.0),
        }
    }

    /// Returns the seconds of `calls` that move `bytes` in total.
    pub fn transfer_s(&self, kind: StreamKind, writes: bool, calls: u64, bytes: u64) -> f64 {
        (self.small_call_ns(kind, writes) * calls as f64 + self.large_byte_ns(kind) * bytes as f64) / 1e9
    }

    /// Returns the price of one byte of a large call on a kind of file.
    pub fn large_byte_ns(&self, kind: StreamKind) -> f64 {
        match kind {
            StreamKind::Pipe if self.piped_byte_ns > 0.0 => self.piped_byte_ns / 2.0,
            _ => self.byte_ns,
        }
    }

    /// Returns the knee of a kind of file: the smallest power of two bytes at which the call costs less than 5 % of what its
    /// bytes cost, from 4 KiB to 256 KiB.
    pub fn knee_bytes(&self, kind: StreamKind, writes: bool) -> u64 {
        const MIN_BYTES: u64 = 4096;
        const MAX_BYTES: u64 = 256 * 1024;
        let bytes = self.small_call_ns(kind, writes) / (self.byte_ns * crate::knee::TOLERANCE);
        (bytes as u64).clamp(MIN_BYTES, MAX_BYTES).next_power_of_two()
    }

    /// Returns the price of a write of `bytes` at the end of a file.
    pub fn append_ns(&self, bytes: f64) -> f64 {
        const PAGE: f64 = 4096.0;
        let page_ns = (self.page_write_ns - self.file_write_ns).max(0.0) * (bytes / PAGE).min(1.0);
        self.file_write_ns + page_ns + (bytes - PAGE).max(0.0) * self.byte_ns
    }

    /// Returns the seconds of `calls` that read `bytes` of a file in total, most of them not for the first time.
    pub fn again_s(&self, calls: u64, bytes: u64) -> f64 {
        (self.file_read_ns * calls as f64 + self.again_byte_ns * bytes as f64) / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_combined_one_by_one() {
        let one = Prices { file_read_ns: 1.0, sync_ns: 9.0, ..Prices::default() };
        let other = Prices { file_read_ns: 2.0, sync_ns: 8.0, ..Prices::default() };
        let least = Prices::of(&[one, other], |values| values.into_iter().fold(f64::INFINITY, f64::min));
        assert_eq!(least, Prices { file_read_ns: 1.0, sync_ns: 8.0, ..Prices::default() });
        assert_eq!(least.values().filter(|ns| *ns == 1.0 || *ns == 8.0).count(), 2);
    }

    #[test]
    fn the_knee_is_where_the_call_is_a_small_part() {
        let prices = Prices { file_write_ns: 900.0, byte_ns: 0.3, ..Prices::default() };
        assert_eq!(prices.knee_bytes(StreamKind::File, true), 65_536);
        let slow = Prices { byte_ns: 3.0, ..prices };
        assert_eq!(slow.knee_bytes(StreamKind::File, true), 8192);
        let free = Prices { byte_ns: 0.0, ..prices };
        assert_eq!(free.knee_bytes(StreamKind::File, true), 256 * 1024);
    }

    #[test]
    fn reading_again_and_large_pieces_are_cheaper() {
        let prices = Prices::default();
        assert!((prices.transfer_s(StreamKind::File, false, 1, 1_000_000) - 300.4e-6).abs() < 1e-9);
        assert!((prices.append_ns(65_536.0) - 3000.0 - 18_432.0).abs() < 1e-6);
        assert!((prices.append_ns(1024.0) - 1425.0).abs() < 1e-6, "a quarter of a page");
        assert!((prices.again_s(1, 1_000_000) - 50.4e-6).abs() < 1e-9);
    }

    #[test]
    fn kernel_time_corrects_prices() {
        assert_eq!(Prices::scale(2.0, 1.0, 100), 0.5, "they cannot have cost more");
        assert_eq!(Prices::scale(1.0, 1.5, 100_000), 1.5, "dearer here");
        assert_eq!(Prices::scale(1.0, 1.5, 100), 1.0, "few calls: it did something else");
        assert_eq!(Prices::scale(1.0, 3.6, 100_000), 2.5, "some of it is something else");
        assert_eq!(Prices::scale(1.0, 9.0, 100_000), 1.0, "most of it is");
        assert_eq!(Prices::scale(1.0, 0.02, 100_000), 1.0, "a tick or two");
        assert_eq!(Prices::scale(0.0, 1.0, 100_000), 1.0);
    }
}
