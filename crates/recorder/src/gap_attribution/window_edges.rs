//! The streams that a process used next to a gap: at the end of the window before, and at the start of the window after.

use super::{FdFile, GapAttribution, StreamActivity, WindowActivity};

/// Streams used in this part of a window, next to the gap, may have been used in the gap as well.
const EDGE_PART: f64 = 0.25;
const EDGE_PART_MIN_S: f64 = 0.001;
/// Fewest calls before a pause that are taken for a loop: a program that prints a message and then computes makes a few.
const LOOP_CALLS_MIN: u64 = 64;

impl GapAttribution<'_> {
    pub(super) fn near_before(&self) -> Vec<(FdFile, StreamActivity)> {
        self.used_until(self.gap.from_s)
    }

    /// Returns the streams used before the gap, and whether the process paused between its last call and the gap. A process
    /// that waits for a CPU or a device makes no calls. It continues afterwards as before only if it was in a loop.
    pub(super) fn used_before_pause(&self) -> (Vec<(FdFile, StreamActivity)>, bool) {
        let gap = self.gap;
        let last_s =
            gap.window_before.values().map(|active| active.last_s).fold(gap.window_start_s, f64::max);
        if last_s >= gap.from_s - edge_s(gap.window_start_s, gap.from_s) {
            return (self.near_before(), false);
        }
        let used = self.used_until(last_s);
        let is_loop = used.iter().map(|one| one.1.calls).sum::<u64>() >= LOOP_CALLS_MIN;
        (if is_loop { used } else { Vec::new() }, true)
    }

    pub(super) fn near_after(&self) -> Vec<(FdFile, StreamActivity)> {
        // The process may have waited for a CPU after the gap, so its first call counts as the window's start.
        let begin_s = self.after.values().map(|active| active.first_s).fold(f64::INFINITY, f64::min);
        let end_s = self.after.values().map(|active| active.last_s).fold(begin_s, f64::max);
        let until_s = begin_s + edge_s(begin_s, end_s);
        self.near(self.after, |active| active.first_s <= until_s)
    }

    /// Returns the streams used just before `end_s`, which is not before the window's start.
    fn used_until(&self, end_s: f64) -> Vec<(FdFile, StreamActivity)> {
        let since_s = end_s - edge_s(self.gap.window_start_s, end_s);
        self.near(&self.gap.window_before, |active| active.last_s >= since_s)
    }

    /// Returns the streams in the gap's direction that have calls in a window and are near its edge.
    fn near(
        &self,
        window: &WindowActivity,
        is_near: impl Fn(&StreamActivity) -> bool,
    ) -> Vec<(FdFile, StreamActivity)> {
        let same_direction = window.iter().filter(|((_, direction), active)| {
            *direction == self.direction && active.calls > 0 && is_near(active)
        });
        same_direction.map(|((fd_file, _), active)| (*fd_file, *active)).collect()
    }
}

/// Returns the length in seconds of the part of a window that is next to the gap.
fn edge_s(begin_s: f64, end_s: f64) -> f64 {
    ((end_s - begin_s) * EDGE_PART).max(EDGE_PART_MIN_S)
}
