//! The kernel's counts of a process, made its own.
//!
//! /proc/PID/io has more in it than the program's calls: children that were waited for are added to their
//! parent, and the kernel's own reading of executables at execve(2) counts as reads.

use std::collections::HashMap;

use weir_model::trace::{IoTotals, Op};
use weir_sys::{proc, syscalls};

#[derive(Debug, Default)]
pub(super) struct IoAccount {
    /// In the kernel's counts, but not calls of this program.
    excess: IoTotals,
    /// Children that have ended and will be added once the program waits for them, with all they had.
    ended: HashMap<u32, IoTotals>,
}

impl IoAccount {
    /// What was counted so far is none of the program's.
    pub(super) fn begin(&mut self, pid: u32) {
        self.excess = proc::io(pid).unwrap_or_default();
    }

    /// What was counted since `before` (as [`proc::io`] said it then) is the kernel's, at execve(2).
    pub(super) fn kernel_read(&mut self, pid: u32, before: IoTotals) {
        let now = proc::io(pid).unwrap_or(before);
        self.excess = plus(self.excess, minus(now, before));
    }

    /// These calls were counted and not made by the program.
    pub(super) fn leave_out(&mut self, calls: IoTotals) {
        self.excess = plus(self.excess, calls);
    }

    /// A child ended with these counts.
    pub(super) fn child_ended(&mut self, child: u32, io: IoTotals) {
        // Not without bound when a program starts many and none of its totals are asked for.
        if self.ended.len() >= 64 {
            self.settle();
        }
        self.ended.insert(child, io);
    }

    /// The program's own counts.
    pub(super) fn read(&mut self, pid: u32) -> Option<IoTotals> {
        // A child may be waited for between the two looks; once more, then, and at most as often as it has any.
        for _child in 0..=self.ended.len() {
            self.settle();
            let io = proc::io(pid)?;
            if self.ended.keys().all(|&child| proc::exists(child)) {
                return Some(minus(io, self.excess));
            }
        }
        self.settle();
        Some(minus(proc::io(pid)?, self.excess))
    }

    /// All that the kernel has of a process whose own counts are these: what its parent will get.
    pub(super) fn with_excess(&mut self, own: IoTotals) -> IoTotals {
        plus(own, self.excess)
    }

    /// Moves the children that were waited for: gone from /proc.
    fn settle(&mut self) {
        let excess = &mut self.excess;
        self.ended.retain(|&child, io| {
            let waits = proc::exists(child);
            if !waits {
                *excess = plus(*excess, *io);
            }
            waits
        });
    }
}

/// What the kernel counts for one call.
pub(super) fn counted(op: Op, result: i64) -> IoTotals {
    let (read, write) = syscalls::counted_as(op);
    let bytes = result.max(0) as u64;
    // Plain calls look at the descriptor before they count.
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

pub(super) fn plus(one: IoTotals, other: IoTotals) -> IoTotals {
    each(one, other, u64::saturating_add)
}

pub(super) fn minus(one: IoTotals, other: IoTotals) -> IoTotals {
    each(one, other, u64::saturating_sub)
}

/// The larger of each.
pub(super) fn most(one: IoTotals, other: IoTotals) -> IoTotals {
    each(one, other, u64::max)
}
