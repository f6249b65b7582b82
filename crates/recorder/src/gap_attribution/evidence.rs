//! The evidence that attribution uses: the streams of a process in the windows around a gap, its descriptors at
//! both edges, and what the gap transferred in total.

use foldhash::{HashMap, HashSet};
use weir_model::Direction;
use weir_model::trace::IoTotals;

use super::NEGLIGIBLE_BYTES;

/// A descriptor and the id of its open file.
pub(crate) type FdFile = (i32, u32);

/// The activity of a stream in one window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct StreamActivity {
    pub calls: u64,
    pub bytes: u64,
    pub first_s: f64,
    pub last_s: f64,
    /// The kernel's totals may lack some of its calls: a socket's.
    pub partly_counted: bool,
}

/// The streams of a process in one window.
pub(crate) type WindowActivity = HashMap<(FdFile, Direction), StreamActivity>;

/// The change of an open file over a gap.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct FdProgress {
    /// Bytes by which the position advanced; None without a usable position.
    pub advance: Option<i64>,
    /// Direction of a one-way descriptor; None for O_RDWR.
    pub access: Option<Direction>,
    /// The calls of the window before did not move the position (pread(2), or reads at end of file).
    pub unmoved: bool,
    /// Position of a closed file at the start of the gap, in bytes, without those of earlier gaps and of the windows before them.
    pub unknown_at_start: u64,
}

/// The descriptors of a process at the end of a gap.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FdsAtGapEnd {
    pub still_open: HashMap<FdFile, FdProgress>,
    /// Files opened within the gap.
    pub new: HashMap<FdFile, FdProgress>,
    /// Descriptors that are open at the end of the gap.
    pub fds: HashSet<i32>,
}

/// One gap of one process. Times are in seconds of the recording.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProcessGap {
    pub from_s: f64,
    pub to_s: f64,
    /// Start of the window before the gap.
    pub window_start_s: f64,
    pub transferred: IoTotals,
    pub window_before: WindowActivity,
    /// None if the process exited within the gap.
    pub fds_at_end: Option<FdsAtGapEnd>,
    /// Files closed within the gap; `advance` is the number of bytes from their position to their end.
    pub closed: HashMap<FdFile, FdProgress>,
    /// Descriptors that were open at the start.
    pub open_at_start: HashSet<FdFile>,
    /// Files opened and closed within the gap, as far as fd snapshots show them.
    pub short_lived: HashMap<FdFile, FdProgress>,
}

/// Estimated calls and bytes, which may be fractions.
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

    /// Returns whether the mean sizes of the calls differ by at most this factor.
    pub(super) fn is_same_size(self, other: Self, factor: f64) -> bool {
        let (one, other) = (self.mean().max(NEGLIGIBLE_BYTES), other.mean().max(NEGLIGIBLE_BYTES));
        one.max(other) <= one.min(other) * factor
    }
}

/// Gives the streams whose calls have an unknown size the calls that the others leave of `calls`, in proportion to their bytes.
/// Without such streams, or with fewer calls than these, nothing changes.
pub(super) fn spread_calls(
    attributed: &mut [(Option<FdFile>, CallsAndBytes)],
    calls: f64,
    is_known: impl Fn(FdFile) -> bool,
) {
    let known = |one: &(Option<FdFile>, CallsAndBytes)| one.0.is_some_and(&is_known);
    let known_calls: f64 = attributed.iter().filter(|one| known(one)).map(|one| one.1.calls).sum();
    let (mut number, mut bytes) = (0.0, 0.0);
    for one in attributed.iter().filter(|one| !known(one)) {
        (number, bytes) = (number + 1.0, bytes + one.1.bytes);
    }
    let left = calls - known_calls;
    if known_calls > 0.0 && bytes > 0.0 && left >= number {
        for one in attributed.iter_mut().filter(|one| !known(one)) {
            one.1.calls = left * one.1.bytes / bytes;
        }
    }
}
