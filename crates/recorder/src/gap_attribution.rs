//! Through which streams of a process the bytes went that it moved in a pause, when nobody looked at its calls: its totals
//! say how many they were, the positions of its files where most of them went, and what it did before and after tells the
//! rest if it did the same. What none of these tells is not known, and said to be so.

mod facts;
#[cfg(test)]
mod tests;

use foldhash::{HashSet, HashSetExt};
use weir_model::Direction;

pub(super) use facts::{
    CallsAndBytes, FdFile, FdProgress, FdsAtGapEnd, ProcessGap, StreamActivity, WindowActivity,
};

/// Positions are read a moment before or after the totals: they may differ by one part in so many.
const APART: f64 = 32.0;
/// What a process did in this part of a burst, at its end or its beginning, it may have done in the pause as well.
const NEAR: f64 = 0.25;
const NEAR_LEAST_S: f64 = 0.001;
/// A process that ended unseen did what it had done before if its calls were of the same size, up to this factor.
const ALIKE: f64 = 1.25;
/// If there was one stream only that it wrote, or read: numbers that are counted up and printed get longer.
const ALIKE_ONE: f64 = 2.0;
/// Calls that move less than this on the mean, bytes, nearly all move nothing: whoever reads on at the end of a file.
const NOTHING: f64 = 0.25;
/// Files that were closed before the pause and had less than one call in so many belong to the beginning of what goes on.
const BEGINNING: u64 = 64;

/// What went through each stream in this direction; None: it is not known through which. `after` is what was seen next.
pub(super) fn shares(
    pause: &ProcessGap,
    after: &WindowActivity,
    direction: Direction,
) -> Vec<(Option<FdFile>, CallsAndBytes)> {
    let (calls, bytes) = match direction {
        Direction::In => (pause.moved.read_calls, pause.moved.read_bytes),
        _ => (pause.moved.write_calls, pause.moved.written_bytes),
    };
    if calls == 0 {
        return Vec::new();
    }
    let whole = CallsAndBytes { calls: calls as f64, bytes: bytes as f64 };
    let view = View { pause, after, direction };
    let mut placed = view.by_position(whole);
    let mut rest = whole.bytes - placed.iter().map(|one| one.1.bytes).sum::<f64>();
    let little = rest <= whole.bytes / APART;
    if rest <= 0.0 || little && (view.had_before(&mut placed, rest) || view.stays(&placed)) {
        rest = 0.0;
    }
    if rest == 0.0 && !placed.is_empty() {
        return scaled(placed, whole);
    }
    let guessed: f64 = placed.iter().map(|one| one.1.calls).sum();
    let left = CallsAndBytes { calls: (whole.calls - guessed).max(whole.calls / 100.0), bytes: rest };
    let others = match view.by_activity(left, &placed) {
        // Totals and positions are of two moments, which are far apart on a busy machine.
        None if rest <= whole.bytes / 2.0 && view.is_only(&placed) && view.stays(&placed) => Vec::new(),
        others => others.unwrap_or_else(|| vec![(None, left)]),
    };
    scaled(placed.into_iter().chain(others).collect(), whole)
}

/// So that they are the whole.
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

struct View<'a> {
    pause: &'a ProcessGap,
    after: &'a WindowActivity,
    direction: Direction,
}

impl View<'_> {
    /// Files that have moved on by as much as was moved, or less. Others may have moved them: then they say nothing.
    fn by_position(&self, whole: CallsAndBytes) -> Vec<(Option<FdFile>, CallsAndBytes)> {
        let empty = FdsAtGapEnd::default();
        let table = self.pause.table.as_ref().unwrap_or(&empty);
        let mut placed = self.moved_on(whole, table.kept.iter().chain(&table.new));
        let sum =
            |placed: &[(Option<FdFile>, CallsAndBytes)]| placed.iter().map(|one| one.1.bytes).sum::<f64>();
        let left = whole.bytes - sum(&placed);
        if left < -whole.bytes / APART {
            return Vec::new();
        }
        let closed = self.moved_on(whole, self.pause.gone.iter());
        let beyond = sum(&closed);
        // What was written made them as long as they are; what was read may have been less than there is.
        let fits = beyond <= left * (1.0 + 1.0 / APART);
        if fits && (self.direction == Direction::Out || beyond >= left * (1.0 - 1.0 / APART)) {
            placed.extend(closed);
        }
        let glimpsed = self.moved_on(whole, self.pause.glimpsed.iter());
        // More than there was: they were sought to where they stood.
        if sum(&glimpsed) + sum(&placed) <= whole.bytes * (1.0 + 1.0 / APART) {
            placed.extend(glimpsed);
        }
        placed
    }

    fn moved_on<'t>(
        &self,
        whole: CallsAndBytes,
        places: impl Iterator<Item = (&'t FdFile, &'t FdProgress)>,
    ) -> Vec<(Option<FdFile>, CallsAndBytes)> {
        let other_bytes = match self.direction {
            Direction::In => self.pause.moved.written_bytes,
            _ => self.pause.moved.read_bytes,
        };
        let fits = |kept: &FdProgress| kept.way.map_or(other_bytes == 0, |way| way == self.direction);
        let mut seen = HashSet::new();
        let mut placed = Vec::new();
        let mut places: Vec<(&FdFile, &FdProgress)> = places.collect();
        places.sort_by_key(|one| *one.0);
        for (&(fd, file), kept) in places {
            // Two descriptors of one open file have one position.
            let advance = kept.advance.filter(|advance| *advance > 0 && fits(kept));
            if let Some(advance) = advance.filter(|_| seen.insert(file)) {
                let (bytes, place) = (advance as f64, self.used_as((fd, file)));
                let calls = bytes / self.mean_of(place).unwrap_or(whole.mean()).max(1.0);
                placed.push((Some(place), CallsAndBytes { calls, bytes }));
            }
        }
        placed
    }

    /// The number by which an open file was used before and after, if it has several.
    fn used_as(&self, place: FdFile) -> FdFile {
        if self.activity(place).calls > 0.0 {
            return place;
        }
        let around = self.pause.before.iter().chain(self.after);
        let same = around
            .filter(|((other, way), one)| other.1 == place.1 && *way == self.direction && one.calls > 0);
        same.max_by_key(|((other, _), one)| (one.calls, other.0)).map_or(place, |((other, _), _)| *other)
    }

    fn mean_of(&self, place: FdFile) -> Option<f64> {
        let sum = self.activity(place);
        Some(sum.mean()).filter(|mean| *mean > 0.0)
    }

    fn activity(&self, place: FdFile) -> CallsAndBytes {
        let mut sum = CallsAndBytes::default();
        for burst in [&self.pause.before, self.after] {
            if let Some(one) = burst.get(&(place, self.direction)) {
                sum.add(CallsAndBytes { calls: one.calls as f64, bytes: one.bytes as f64 });
            }
        }
        sum
    }

    /// In the shares of the bursts around the pause, if the process did the same before and after.
    fn by_activity(
        &self,
        left: CallsAndBytes,
        placed: &[(Option<FdFile>, CallsAndBytes)],
    ) -> Option<Vec<(Option<FdFile>, CallsAndBytes)>> {
        let (places, ended) = self.candidates(left, placed)?;
        let mut sum = CallsAndBytes::default();
        let parts: Vec<(FdFile, CallsAndBytes)> =
            places.into_iter().map(|place| (place, self.activity(place))).collect();
        parts.iter().for_each(|part| sum.add(part.1));
        // No file has more than is in it behind the place where it stood.
        let room = |place: &FdFile| self.pause.gone.get(place).and_then(|gone| gone.advance);
        let most =
            parts.iter().map(|(place, _)| room(place).map_or(f64::INFINITY, |room| room as f64)).sum::<f64>();
        let alike = if parts.len() == 1 { ALIKE_ONE } else { ALIKE };
        let fits = left.is_alike(sum, alike) && (self.direction == Direction::Out || left.bytes <= most);
        if sum.calls <= 0.0 || ended && !fits {
            return None;
        }
        let share = |amount: CallsAndBytes| {
            let calls = amount.calls / sum.calls;
            CallsAndBytes {
                calls: left.calls * calls,
                bytes: left.bytes * if sum.bytes > 0.0 { amount.bytes / sum.bytes } else { calls },
            }
        };
        Some(parts.into_iter().map(|(place, amount)| (Some(place), share(amount))).collect())
    }

    /// Streams that may have gone on in the pause, and whether they had come to their end by then; None: the process opened
    /// and closed others about then.
    fn candidates(
        &self,
        left: CallsAndBytes,
        placed: &[(Option<FdFile>, CallsAndBytes)],
    ) -> Option<(Vec<FdFile>, bool)> {
        let before = self.near_before();
        let after = self.near_after();
        let around = || before.iter().chain(&after);
        if around().any(|(_, active)| active.apart) {
            return None;
        }
        let is_placed = |place: &FdFile| placed.iter().any(|one| one.0 == Some(*place));
        let until_their_ends = || {
            // By whatever number: see below.
            let open = |place: &FdFile| self.pause.open.iter().any(|other| other.1 == place.1);
            let goes_on = |one: &(FdFile, StreamActivity)| open(&one.0) && !is_placed(&one.0);
            let all =
                !before.is_empty() && before.iter().all(goes_on) && !self.goes_through_files(&before, open);
            all.then(|| (before.iter().map(|one| one.0).collect(), true))
        };
        let Some(table) = &self.pause.table else {
            return self.pause.glimpsed.is_empty().then(until_their_ends).flatten();
        };
        let both =
            |place: &FdFile| [&before, &after].iter().all(|side| side.iter().any(|one| one.0 == *place));
        // A shell gives a number to an open file for each command anew; at the end of the pause it may have had none.
        let by_another = |place: &FdFile| table.kept.iter().find(|kept| kept.0.1 == place.1 && both(place));
        let kept = |place: &FdFile| table.kept.get(place).or_else(|| by_another(place).map(|kept| kept.1));
        let known = |place: &FdFile| kept(place).is_some();
        let opened = |place: &FdFile| known(place) || table.new.contains_key(place);
        let here = |kept: &&FdProgress| kept.way.is_none_or(|way| way == self.direction);
        let goes = |kept: &FdProgress| kept.advance.is_none() && here(&kept);
        let gone = before.iter().any(|one| !known(&one.0)) && !self.has_just_begun(&before, left, known);
        let glimpsed = self.pause.glimpsed.values().any(|kept| here(&kept));
        if gone && !glimpsed && after.is_empty() && !table.new.values().any(|kept| here(&kept)) {
            return until_their_ends();
        }
        let changes =
            gone || glimpsed || after.iter().any(|one| !opened(&one.0)) || table.new.values().any(goes);
        let mut places: Vec<FdFile> = around().map(|one| one.0).collect();
        places.sort_unstable();
        places.dedup();
        // A file that has moved on by less did not get it, unless its calls do not move it on; by more, others were at it.
        let fits = |kept: &FdProgress, advance: i64| {
            advance == 0 && kept.still || advance as f64 >= left.bytes * (1.0 - 1.0 / APART)
        };
        let moved = |place: &FdFile| kept(place).and_then(|kept| Some((kept, kept.advance?)));
        let may =
            |place: &FdFile| moved(place).is_none_or(|(kept, advance)| both(place) && fits(kept, advance));
        // Of what was opened in it, the position says all.
        places.retain(|place| known(place) && may(place) && !is_placed(place));
        let usual = (!changes && !before.is_empty() && !places.is_empty()).then_some((places, false));
        // It was still there when the pause was over, but at its end: it does nothing more.
        let far_enough = |place: &FdFile| moved(place).is_none_or(|(kept, advance)| fits(kept, advance));
        let at_its_end = !changes && self.after.is_empty() && before.iter().all(|one| far_enough(&one.0));
        usual.or_else(|| at_its_end.then(until_their_ends).flatten())
    }

    /// Whether nearly all calls before the pause were of what stayed, and as large as those in it: what else it read then, a
    /// script and its modules, was the beginning.
    fn has_just_begun(
        &self,
        before: &[(FdFile, StreamActivity)],
        left: CallsAndBytes,
        stays: impl Fn(&FdFile) -> bool,
    ) -> bool {
        let (mut staying, mut all) = (CallsAndBytes::default(), 0);
        for (place, active) in before {
            all += active.calls;
            if stays(place) {
                staying.add(self.activity(*place));
            }
        }
        let closed: u64 = before.iter().filter(|one| !stays(&one.0)).map(|one| one.1.calls).sum();
        closed * BEGINNING < all && left.is_alike(staying, ALIKE)
    }

    /// Gives what was moved between the look at the totals and that at the files to one that was closed since, if it stood
    /// far enough: no file gets more than is in it.
    fn had_before(&self, placed: &mut [(Option<FdFile>, CallsAndBytes)], rest: f64) -> bool {
        let stood = |place: Option<FdFile>| {
            let same = |one: &(&FdFile, &FdProgress)| place.is_some_and(|place| one.0.1 == place.1);
            self.pause.gone.iter().find(same).map_or(0.0, |(_, gone)| gone.stood as f64)
        };
        let one = placed.iter_mut().find(|(place, _)| stood(*place) >= rest);
        one.map(|(_, amount)| amount.bytes += rest).is_some()
    }

    /// Whether these were open at both ends of the pause: a file that was opened or closed in it has just what its position says.
    fn stays(&self, placed: &[(Option<FdFile>, CallsAndBytes)]) -> bool {
        let kept =
            |file: u32| self.pause.table.iter().any(|table| table.kept.keys().any(|one| one.1 == file));
        placed.iter().all(|(place, _)| place.is_some_and(|place| kept(place.1)))
    }

    /// Nothing else was read or written before and after the pause than what moved on in it.
    fn is_only(&self, placed: &[(Option<FdFile>, CallsAndBytes)]) -> bool {
        let is_placed = |place: &FdFile| placed.iter().any(|one| one.0 == Some(*place));
        let (before, after) = (self.near_before(), self.near_after());
        let new = self.pause.table.iter().flat_map(|table| &table.new);
        let mut others = new.filter(|(_, kept)| kept.way.is_none_or(|way| way == self.direction));
        let around = || before.iter().chain(&after);
        around().next().is_some()
            && around().all(|one| is_placed(&one.0) && !one.1.apart)
            && others.all(|one| is_placed(one.0))
    }

    /// Whether it has closed others in the burst before that it had used as much as these: the next would follow.
    fn goes_through_files(&self, these: &[(FdFile, StreamActivity)], open: impl Fn(&FdFile) -> bool) -> bool {
        let closed =
            self.pause.before.iter().filter(|((place, way), _)| *way == self.direction && !open(place));
        let calls: u64 = closed.map(|(_, active)| active.calls).sum();
        calls * 4 >= these.iter().map(|one| one.1.calls).sum::<u64>().max(1)
    }

    fn near_before(&self) -> Vec<(FdFile, StreamActivity)> {
        let pause = self.pause;
        let since_s = pause.from_s - ((pause.from_s - pause.looked_s) * NEAR).max(NEAR_LEAST_S);
        self.near(&pause.before, |active| active.last_s >= since_s)
    }

    fn near_after(&self) -> Vec<(FdFile, StreamActivity)> {
        // It may have had to wait for a processor.
        let begin_s = self.after.values().map(|active| active.first_s).fold(f64::INFINITY, f64::min);
        let end_s = self.after.values().map(|active| active.last_s).fold(begin_s, f64::max);
        let until_s = begin_s + ((end_s - begin_s) * NEAR).max(NEAR_LEAST_S);
        self.near(self.after, |active| active.first_s <= until_s)
    }

    fn near(
        &self,
        burst: &WindowActivity,
        is: impl Fn(&StreamActivity) -> bool,
    ) -> Vec<(FdFile, StreamActivity)> {
        let here = burst
            .iter()
            .filter(|((_, way), active)| *way == self.direction && active.calls > 0 && is(active));
        here.map(|((place, _), active)| (*place, *active)).collect()
    }
}
