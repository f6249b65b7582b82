//! Finds the streams through which a process moved its bytes in a gap. The kernel's totals say how many calls
//! and bytes there were; the changed positions of its files say where most of them went; the windows before and
//! after say where the rest went, if the process did the same in both. The remainder is of unknown streams.

mod evidence;
#[cfg(test)]
mod tests;
mod window_edges;

use foldhash::{HashSet, HashSetExt};
use weir_model::Direction;

use evidence::spread_calls;
pub(super) use evidence::{
    CallsAndBytes, FdFile, FdProgress, FdsAtGapEnd, ProcessGap, StreamActivity, WindowActivity,
};

/// Positions are read shortly before or after the totals: the two may differ by 1/32.
const TOLERANCE: f64 = 32.0;
/// A process that exits in a gap continued as before if the mean size of its calls differs by at most this
/// factor.
const SAME_SIZE: f64 = 1.25;
/// The factor for a process with a single stream: printed counters get longer.
const SAME_SIZE_ALONE: f64 = 2.0;
/// Mean bytes per call below which nearly all calls move nothing, as reads at end of file do.
const NEGLIGIBLE_BYTES: f64 = 0.25;
/// Files closed before the gap are part of the program's startup if they have less than 1/64 of the calls.
const STARTUP_PART: u64 = 64;

/// Returns the calls and bytes of each stream in the gap; None is an unknown stream. `after` is the next
/// window.
pub(super) fn shares(
    gap: &ProcessGap,
    after: &WindowActivity,
    direction: Direction,
) -> Vec<(Option<FdFile>, CallsAndBytes)> {
    let (calls, bytes) = match direction {
        Direction::In => (gap.transferred.read_calls, gap.transferred.read_bytes),
        _ => (gap.transferred.write_calls, gap.transferred.written_bytes),
    };
    if calls == 0 {
        return Vec::new();
    }
    let whole = CallsAndBytes { calls: calls as f64, bytes: bytes as f64 };
    let attribution = GapAttribution { gap, after, direction };
    let mut attributed = attribution.by_position(whole);
    let mut rest_bytes = whole.bytes - attributed.iter().map(|one| one.1.bytes).sum::<f64>();
    let is_small = rest_bytes <= whole.bytes / TOLERANCE;
    if rest_bytes <= 0.0
        || is_small
            && (attribution.credit_closed_file(&mut attributed, rest_bytes)
                || attribution.are_open_at_both_ends(&attributed))
    {
        rest_bytes = 0.0;
    }
    if rest_bytes == 0.0 && !attributed.is_empty() {
        spread_calls(&mut attributed, whole.calls, |fd_file| attribution.mean_bytes(fd_file).is_some());
        return scaled(attributed, whole);
    }
    let known_calls: f64 = attributed.iter().map(|one| one.1.calls).sum();
    let rest =
        CallsAndBytes { calls: (whole.calls - known_calls).max(whole.calls / 100.0), bytes: rest_bytes };
    let others = match attribution.by_activity(rest, &attributed) {
        // On a busy machine the totals and positions are read at times that are far apart.
        None if rest_bytes <= whole.bytes / 2.0
            && attribution.are_only_streams(&attributed)
            && attribution.are_open_at_both_ends(&attributed) =>
        {
            Vec::new()
        }
        others => others.unwrap_or_else(|| vec![(None, rest)]),
    };
    scaled(attributed.into_iter().chain(others).collect(), whole)
}

/// Scales the shares so that their sum is `whole`.
fn scaled(
    mut shares: Vec<(Option<FdFile>, CallsAndBytes)>,
    whole: CallsAndBytes,
) -> Vec<(Option<FdFile>, CallsAndBytes)> {
    let mut sum = CallsAndBytes::default();
    shares.iter().for_each(|one| sum.add(one.1));
    let factor = |of: f64, sum: f64| if sum > 0.0 { of / sum } else { 0.0 };
    let (calls, bytes) = (factor(whole.calls, sum.calls), factor(whole.bytes, sum.bytes));
    for (_, amount) in &mut shares {
        *amount = CallsAndBytes { calls: amount.calls * calls, bytes: amount.bytes * bytes };
    }
    shares
}

struct GapAttribution<'a> {
    gap: &'a ProcessGap,
    after: &'a WindowActivity,
    direction: Direction,
}

impl GapAttribution<'_> {
    /// Returns the files whose positions advanced by no more than the total. If they advanced by more, other
    /// processes moved them, and the positions say nothing.
    fn by_position(&self, whole: CallsAndBytes) -> Vec<(Option<FdFile>, CallsAndBytes)> {
        let empty = FdsAtGapEnd::default();
        let table = self.gap.fds_at_end.as_ref().unwrap_or(&empty);
        let mut attributed = self.advanced(whole, table.still_open.iter().chain(&table.new));
        let sum = |attributed: &[(Option<FdFile>, CallsAndBytes)]| {
            attributed.iter().map(|one| one.1.bytes).sum::<f64>()
        };
        let rest = whole.bytes - sum(&attributed);
        if rest < -whole.bytes / TOLERANCE {
            return Vec::new();
        }
        let closed = self.advanced(whole, self.gap.closed.iter());
        let closed_bytes = sum(&closed);
        // A written file ends where the writes ended; a read file may not have been read to its end.
        let fits = closed_bytes <= rest * (1.0 + 1.0 / TOLERANCE);
        if fits && (self.direction == Direction::Out || closed_bytes >= rest * (1.0 - 1.0 / TOLERANCE)) {
            attributed.extend(closed);
        }
        let short_lived = self.advanced(whole, self.gap.short_lived.iter());
        // If the sum exceeds the total, the positions were set by lseek(2).
        if sum(&short_lived) + sum(&attributed) <= whole.bytes * (1.0 + 1.0 / TOLERANCE) {
            attributed.extend(short_lived);
        }
        attributed
    }

    fn advanced<'t>(
        &self,
        whole: CallsAndBytes,
        fd_files: impl Iterator<Item = (&'t FdFile, &'t FdProgress)>,
    ) -> Vec<(Option<FdFile>, CallsAndBytes)> {
        let other_bytes = match self.direction {
            Direction::In => self.gap.transferred.written_bytes,
            _ => self.gap.transferred.read_bytes,
        };
        let fits = |progress: &FdProgress| {
            progress.access.map_or(other_bytes == 0, |direction| direction == self.direction)
        };
        let mut counted_files = HashSet::new();
        let mut attributed = Vec::new();
        let mut fd_files: Vec<(&FdFile, &FdProgress)> = fd_files.collect();
        fd_files.sort_by_key(|one| *one.0);
        for (&(fd, file), progress) in fd_files {
            // Descriptors of one open file share its position.
            let advance = progress.advance.filter(|advance| *advance > 0 && fits(progress));
            if let Some(advance) = advance.filter(|_| counted_files.insert(file)) {
                let (bytes, fd_file) = (advance as f64, self.used_fd((fd, file)));
                let calls = bytes / self.mean_bytes(fd_file).unwrap_or(whole.mean()).max(1.0);
                attributed.push((Some(fd_file), CallsAndBytes { calls, bytes }));
            }
        }
        attributed
    }

    /// Returns the descriptor that the windows used for this open file, if it has several.
    fn used_fd(&self, fd_file: FdFile) -> FdFile {
        if self.activity(fd_file).calls > 0.0 {
            return fd_file;
        }
        let around = self.gap.window_before.iter().chain(self.after);
        let same = around.filter(|((other, direction), one)| {
            other.1 == fd_file.1 && *direction == self.direction && one.calls > 0
        });
        same.max_by_key(|((other, _), one)| (one.calls, other.0)).map_or(fd_file, |((other, _), _)| *other)
    }

    fn mean_bytes(&self, fd_file: FdFile) -> Option<f64> {
        let sum = self.activity(fd_file);
        Some(sum.mean()).filter(|mean| *mean > 0.0)
    }

    fn activity(&self, fd_file: FdFile) -> CallsAndBytes {
        let mut sum = CallsAndBytes::default();
        for window in [&self.gap.window_before, self.after] {
            if let Some(one) = window.get(&(fd_file, self.direction)) {
                sum.add(CallsAndBytes { calls: one.calls as f64, bytes: one.bytes as f64 });
            }
        }
        sum
    }

    /// Distributes the rest as in the windows before and after, if the process did the same in both.
    fn by_activity(
        &self,
        rest: CallsAndBytes,
        attributed: &[(Option<FdFile>, CallsAndBytes)],
    ) -> Option<Vec<(Option<FdFile>, CallsAndBytes)>> {
        let (fd_files, is_guess) = self.candidates(rest, attributed)?;
        let mut sum = CallsAndBytes::default();
        let parts: Vec<(FdFile, CallsAndBytes)> =
            fd_files.into_iter().map(|fd_file| (fd_file, self.activity(fd_file))).collect();
        parts.iter().for_each(|part| sum.add(part.1));
        let most = parts.iter().map(|(fd_file, _)| self.room(fd_file)).sum::<f64>();
        let alike = if parts.len() == 1 { SAME_SIZE_ALONE } else { SAME_SIZE };
        let fits = rest.is_same_size(sum, alike) && rest.bytes <= most;
        if sum.calls <= 0.0 || is_guess && !fits {
            return None;
        }
        let share = |amount: CallsAndBytes| {
            let calls = amount.calls / sum.calls;
            CallsAndBytes {
                calls: rest.calls * calls,
                bytes: rest.bytes * if sum.bytes > 0.0 { amount.bytes / sum.bytes } else { calls },
            }
        };
        Some(parts.into_iter().map(|(fd_file, amount)| (Some(fd_file), share(amount))).collect())
    }

    /// Returns the most bytes that the gap may have moved through a file: a closed file has no more than those after its
    /// position, unless writes did not advance it (pwrite(2)).
    fn room(&self, fd_file: &FdFile) -> f64 {
        let limits = |closed: &&FdProgress| self.direction == Direction::In || !closed.unmoved;
        let closed = self.gap.closed.get(fd_file).filter(limits);
        closed.and_then(|closed| closed.advance).map_or(f64::INFINITY, |room| room as f64)
    }

    /// Returns the streams that may have been used in the gap, and whether only calls of the same size can show it: the process
    /// exited in the gap or paused before it. Returns none if the process opened or closed other files about then.
    fn candidates(
        &self,
        rest: CallsAndBytes,
        attributed: &[(Option<FdFile>, CallsAndBytes)],
    ) -> Option<(Vec<FdFile>, bool)> {
        let (before, paused) = self.used_before_pause();
        let after = self.near_after();
        let around = || before.iter().chain(&after);
        if around().any(|(_, active)| active.partly_counted) {
            return None;
        }
        let is_attributed = |fd_file: &FdFile| attributed.iter().any(|one| one.0 == Some(*fd_file));
        let used_until_exit = || self.used_until_exit(&before, attributed);
        let Some(table) = &self.gap.fds_at_end else {
            return self.gap.short_lived.is_empty().then(used_until_exit).flatten();
        };
        let in_both_windows =
            |fd_file: &FdFile| [&before, &after].iter().all(|side| side.iter().any(|one| one.0 == *fd_file));
        // A shell assigns a new descriptor for each command, and may have none at the end of the gap.
        let by_another_fd = |fd_file: &FdFile| {
            table.still_open.iter().find(|progress| progress.0.1 == fd_file.1 && in_both_windows(fd_file))
        };
        let progress = |fd_file: &FdFile| {
            table.still_open.get(fd_file).or_else(|| by_another_fd(fd_file).map(|progress| progress.1))
        };
        let known = |fd_file: &FdFile| progress(fd_file).is_some();
        let opened = |fd_file: &FdFile| known(fd_file) || table.new.contains_key(fd_file);
        let same_direction =
            |progress: &&FdProgress| progress.access.is_none_or(|direction| direction == self.direction);
        let has_no_position = |progress: &FdProgress| progress.advance.is_none() && same_direction(&progress);
        let closed =
            before.iter().any(|one| !known(&one.0)) && !self.only_startup_closed(&before, rest, known);
        let short_lived = self.gap.short_lived.values().any(|progress| same_direction(&progress));
        if closed
            && !short_lived
            && after.is_empty()
            && !table.new.values().any(|progress| same_direction(&progress))
        {
            return used_until_exit();
        }
        let changes = closed
            || short_lived
            || after.iter().any(|one| !opened(&one.0))
            || table.new.values().any(has_no_position);
        let mut fd_files: Vec<FdFile> = around().map(|one| one.0).collect();
        fd_files.sort_unstable();
        fd_files.dedup();
        // A file that advanced by less did not receive the rest, unless its calls do not advance it. One that
        // advanced by more is used by other processes too.
        let fits = |progress: &FdProgress, advance: i64| {
            advance == 0 && progress.unmoved || advance as f64 >= rest.bytes * (1.0 - 1.0 / TOLERANCE)
        };
        let advance_of =
            |fd_file: &FdFile| progress(fd_file).and_then(|progress| Some((progress, progress.advance?)));
        let may = |fd_file: &FdFile| {
            advance_of(fd_file)
                .is_none_or(|(progress, advance)| in_both_windows(fd_file) && fits(progress, advance))
        };
        // The position of a file opened in the gap gives its exact bytes.
        fd_files.retain(|fd_file| known(fd_file) && may(fd_file) && !is_attributed(fd_file));
        let same_after = before.len() == after.len() && before.iter().all(|one| in_both_windows(&one.0));
        let continues = !changes && !before.is_empty() && !fd_files.is_empty() && (!paused || same_after);
        let continued = continues.then_some((fd_files, paused));
        // The process was alive at the end of the gap but made no more calls.
        let fits_rest =
            |fd_file: &FdFile| advance_of(fd_file).is_none_or(|(progress, advance)| fits(progress, advance));
        let exited_next = !changes && self.after.is_empty() && before.iter().all(|one| fits_rest(&one.0));
        continued.or_else(|| exited_next.then(used_until_exit).flatten())
    }

    /// Returns the streams that the process used before the gap, if it may have used them up to its exit.
    fn used_until_exit(
        &self,
        before: &[(FdFile, StreamActivity)],
        attributed: &[(Option<FdFile>, CallsAndBytes)],
    ) -> Option<(Vec<FdFile>, bool)> {
        let is_attributed = |fd_file: &FdFile| attributed.iter().any(|one| one.0 == Some(*fd_file));
        // Any descriptor of the open file counts (see `candidates`).
        let open = |fd_file: &FdFile| self.gap.open_at_start.iter().any(|other| other.1 == fd_file.1);
        let continues = |one: &(FdFile, StreamActivity)| open(&one.0) && !is_attributed(&one.0);
        let all =
            !before.is_empty() && before.iter().all(continues) && !self.opens_file_after_file(before, open);
        all.then(|| (before.iter().map(|one| one.0).collect(), true))
    }

    /// Returns whether the closed files belong to the program's startup (a script and its modules): nearly all
    /// calls before the gap are on streams that stay, and have the size of the calls in the gap.
    fn only_startup_closed(
        &self,
        before: &[(FdFile, StreamActivity)],
        rest: CallsAndBytes,
        are_open_at_both_ends: impl Fn(&FdFile) -> bool,
    ) -> bool {
        let (mut staying, mut all) = (CallsAndBytes::default(), 0);
        for (fd_file, active) in before {
            all += active.calls;
            if are_open_at_both_ends(fd_file) {
                staying.add(self.activity(*fd_file));
            }
        }
        let closed: u64 =
            before.iter().filter(|one| !are_open_at_both_ends(&one.0)).map(|one| one.1.calls).sum();
        closed * STARTUP_PART < all && rest.is_same_size(staying, SAME_SIZE)
    }

    /// Gives the bytes moved between the reads of totals and positions to a file that was closed since, if its
    /// position was large enough.
    fn credit_closed_file(
        &self,
        attributed: &mut [(Option<FdFile>, CallsAndBytes)],
        rest_bytes: f64,
    ) -> bool {
        // The window recorded the others of these bytes.
        let unrecorded = |fd_file: Option<FdFile>| {
            let (used, closed) =
                self.gap.closed.iter().find(|one| Some(one.0.1) == fd_file.map(|one| one.1))?;
            let recorded =
                self.gap.window_before.get(&(*used, self.direction)).map_or(0, |active| active.bytes);
            Some(closed.unknown_at_start.saturating_sub(recorded) as f64)
        };
        let one =
            attributed.iter_mut().find(|one| unrecorded(one.0).is_some_and(|bytes| bytes >= rest_bytes));
        one.map(|(_, amount)| amount.bytes += rest_bytes).is_some()
    }

    /// Returns whether these files were open at both ends of the gap. A file opened or closed in the gap has
    /// exactly the bytes of its position.
    fn are_open_at_both_ends(&self, attributed: &[(Option<FdFile>, CallsAndBytes)]) -> bool {
        let progress = |file: u32| {
            self.gap.fds_at_end.iter().any(|table| table.still_open.keys().any(|one| one.1 == file))
        };
        attributed.iter().all(|(fd_file, _)| fd_file.is_some_and(|fd_file| progress(fd_file.1)))
    }

    /// Returns whether the windows used no other streams than these.
    fn are_only_streams(&self, attributed: &[(Option<FdFile>, CallsAndBytes)]) -> bool {
        let is_attributed = |fd_file: &FdFile| attributed.iter().any(|one| one.0 == Some(*fd_file));
        let (before, after) = (self.near_before(), self.near_after());
        let new = self.gap.fds_at_end.iter().flat_map(|table| &table.new);
        let mut others =
            new.filter(|(_, progress)| progress.access.is_none_or(|direction| direction == self.direction));
        let around = || before.iter().chain(&after);
        around().next().is_some()
            && around().all(|one| is_attributed(&one.0) && !one.1.partly_counted)
            && others.all(|one| is_attributed(one.0))
    }

    /// Returns whether the process closed other files in the window before that it used as much as these: more
    /// such files may follow.
    fn opens_file_after_file(
        &self,
        these: &[(FdFile, StreamActivity)],
        open: impl Fn(&FdFile) -> bool,
    ) -> bool {
        let closed = self
            .gap
            .window_before
            .iter()
            .filter(|((fd_file, direction), _)| *direction == self.direction && !open(fd_file));
        let calls: u64 = closed.map(|(_, active)| active.calls).sum();
        calls * 4 >= these.iter().map(|one| one.1.calls).sum::<u64>().max(1)
    }
}
