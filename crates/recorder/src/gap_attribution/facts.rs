//! What is known of a process's streams around a gap.

use foldhash::{HashMap, HashSet};
use weir_model::Direction;
use weir_model::trace::IoTotals;

use super::NOTHING;

/// A descriptor of an open file.
pub(crate) type FdFile = (i32, u32);

/// What a stream did between two pauses.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct StreamActivity {
    pub calls: u64,
    pub bytes: u64,
    pub first_s: f64,
    pub last_s: f64,
    /// Its calls may be others than those that the kernel counts: a socket's.
    pub apart: bool,
}

/// All streams of a process between two pauses.
pub(crate) type WindowActivity = HashMap<(FdFile, Direction), StreamActivity>;

/// A descriptor that was the same open file at the end of a pause.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct FdProgress {
    /// How far a file has moved on; None: it has no position that tells.
    pub advance: Option<i64>,
    /// The one way in which it is open; None: both.
    pub way: Option<Direction>,
    /// It was read or written before the pause and did not move on by that: at offsets of the calls' own.
    pub still: bool,
    /// Of a file that was closed in the pause: where it stood when that began.
    pub stood: u64,
}

/// The descriptors at the end of a pause.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FdsAtGapEnd {
    pub kept: HashMap<FdFile, FdProgress>,
    /// Opened meanwhile.
    pub new: HashMap<FdFile, FdProgress>,
    /// All numbers.
    pub numbers: HashSet<i32>,
}

/// A process in a pause.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProcessGap {
    pub from_s: f64,
    pub to_s: f64,
    /// Since when it was looked at before that.
    pub looked_s: f64,
    pub moved: IoTotals,
    pub before: WindowActivity,
    /// None: it ended in the pause, and nobody could look.
    pub table: Option<FdsAtGapEnd>,
    /// Files that were closed in it: from where they stood to their ends.
    pub gone: HashMap<FdFile, FdProgress>,
    /// What was open when it began.
    pub open: HashSet<FdFile>,
    /// Files that were opened and closed in it, as far as they were seen to be read or written.
    pub glimpsed: HashMap<FdFile, FdProgress>,
}

/// Calls and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CallsAndBytes {
    pub calls: f64,
    pub bytes: f64,
}

impl CallsAndBytes {
    pub fn add(&mut self, more: CallsAndBytes) {
        self.calls += more.calls;
        self.bytes += more.bytes;
    }

    pub(super) fn mean(self) -> f64 {
        if self.calls > 0.0 { self.bytes / self.calls } else { 0.0 }
    }

    /// Whether the calls are of one size, up to a factor.
    pub(super) fn is_alike(self, other: Self, factor: f64) -> bool {
        let (one, other) = (self.mean().max(NOTHING), other.mean().max(NOTHING));
        one.max(other) <= one.min(other) * factor
    }
}
