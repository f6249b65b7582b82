//! The I/O counters of a process without the calls of others.
//!
//! /proc/PID/io counts more than the program's own calls: it includes reaped children, and the reads of executables by
//! the kernel at execve(2).

use std::collections::HashMap;

use weir_model::trace::{IoTotals, Op};
use weir_sys::{proc, syscalls};

/// The corrections of the I/O counters of one process.
#[derive(Debug, Default)]
pub(super) struct IoAccount {
    /// The part of /proc/PID/io that is not from calls of this program.
    excess: IoTotals,
    /// Zombie children by PID. The kernel adds their counters to the parent's when they are reaped.
    zombies: HashMap<u32, IoTotals>,
}

impl IoAccount {
    /// Excludes all counts so far.
    pub(super) fn begin(&mut self, pid: u32) {
        self.excess = proc::io(pid).unwrap_or_default();
    }

    /// Excludes the counts since `before`, a result of [`proc::io`] at the entry of execve(2).
    pub(super) fn exclude_exec(&mut self, pid: u32, before: IoTotals) {
        let now = proc::io(pid).unwrap_or(before);
        self.excess = plus(self.excess, minus(now, before));
    }

    /// Excludes counted calls that the program did not make.
    pub(super) fn exclude(&mut self, calls: IoTotals) {
        self.excess = plus(self.excess, calls);
    }

    /// Adds a child that has ended with these counters.
    pub(super) fn add_zombie(&mut self, child: u32, io: IoTotals) {
        // Bounds the table for a program that starts many children while nothing reads its totals.
        if self.zombies.len() >= 64 {
            self.exclude_reaped();
        }
        self.zombies.insert(child, io);
    }

    /// Reads the program's own counters. Returns None if the process has ended.
    pub(super) fn read(&mut self, pid: u32) -> Option<IoTotals> {
        // If a child is reaped between the two reads, the loop tries again, at most once for each child.
        for _child in 0..=self.zombies.len() {
            self.exclude_reaped();
            let io = proc::io(pid)?;
            if self.zombies.keys().all(|&child| proc::exists(child)) {
                return Some(minus(io, self.excess));
            }
        }
        self.exclude_reaped();
        Some(minus(proc::io(pid)?, self.excess))
    }

    /// Returns the counters that the kernel will add to the parent of a process with these own counters.
    pub(super) fn with_excess(&mut self, own: IoTotals) -> IoTotals {
        plus(own, self.excess)
    }

    /// Excludes the children that were reaped since, which are no longer in /proc.
    fn exclude_reaped(&mut self) {
        let excess = &mut self.excess;
        self.zombies.retain(|&child, io| {
            let is_zombie = proc::exists(child);
            if !is_zombie {
                *excess = plus(*excess, *io);
            }
            is_zombie
        });
    }
}

/// Returns the counts that the kernel adds for one call (fs/read_write.c).
pub(super) fn counted(op: Op, result: i64) -> IoTotals {
    let (read, write) = syscalls::counted_as(op);
    let bytes = result.max(0) as u64;
    // Calls with one buffer check the descriptor before they count.
    let plain = matches!(op, Op::Read | Op::Pread | Op::Write | Op::Pwrite);
    let counts = u64::from(!(plain && result == -i64::from(libc::EBADF)));
    IoTotals {
        read_calls: counts * u64::from(read),
        write_calls: counts * u64::from(write),
        read_bytes: bytes * u64::from(read),
        written_bytes: bytes * u64::from(write),
    }
}

fn each(one: IoTotals, other: IoTotals, with: impl Fn(u64, u64) -> u64) -> IoTotals {
    IoTotals {
        read_calls: with(one.read_calls, other.read_calls),
        write_calls: with(one.write_calls, other.write_calls),
        read_bytes: with(one.read_bytes, other.read_bytes),
        written_bytes: with(one.written_bytes, other.written_bytes),
    }
}

/// Returns the saturating sum.
pub(super) fn plus(one: IoTotals, other: IoTotals) -> IoTotals {
    each(one, other, u64::saturating_add)
}

/// Returns the saturating difference.
pub(super) fn minus(one: IoTotals, other: IoTotals) -> IoTotals {
    each(one, other, u64::saturating_sub)
}

/// Returns the larger value of each counter.
pub(super) fn max(one: IoTotals, other: IoTotals) -> IoTotals {
    each(one, other, u64::max)
}
