//! Through which streams of a process the bytes went that it moved in a pause, when nobody looked at its calls: its totals
//! say how many they were, the positions of its files where most of them went, and what it did before and after tells the
//! rest if it did the same. What none of these tells is not known, and said to be so.

use std::collections::{HashMap, HashSet};

use weir_model::Direction;
use weir_model::trace::IoTotals;

/// A descriptor of an open file.
pub(super) type Place = (i32, u32);

/// What a stream did between two pauses.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Active {
    pub calls: u64,
    pub bytes: u64,
    pub first_s: f64,
    pub last_s: f64,
    /// Its calls may be others than those that the kernel counts: a socket's.
    pub apart: bool,
}

/// All streams of a process between two pauses.
pub(super) type Burst = HashMap<(Place, Direction), Active>;

/// A descriptor that was the same open file at the end of a pause.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Kept {
    /// How far a file has moved on; None: it has no position that tells.
    pub advance: Option<i64>,
    /// The one way in which it is open; None: both.
    pub way: Option<Direction>,
    /// It was read or written before the pause and did not move on by that: at offsets of the calls' own.
    pub still: bool,
}

/// The descriptors at the end of a pause.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Table {
    pub kept: HashMap<Place, Kept>,
    /// Opened meanwhile.
    pub new: HashMap<Place, Kept>,
    /// All numbers.
    pub numbers: HashSet<i32>,
}

/// A process in a pause.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pause {
    pub from_s: f64,
    pub to_s: f64,
    /// Since when it was looked at before that.
    pub looked_s: f64,
    pub moved: IoTotals,
    pub before: Burst,
    /// None: it ended in the pause, and nobody could look.
    pub table: Option<Table>,
    /// Files that were closed in it: from where they stood to their ends.
    pub gone: HashMap<Place, Kept>,
    /// What was open when it began.
    pub open: HashSet<Place>,
}

/// Calls and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Amount {
    pub calls: f64,
    pub bytes: f64,
}

impl Amount {
    pub fn add(&mut self, more: Amount) {
        self.calls += more.calls;
        self.bytes += more.bytes;
    }

    fn mean(self) -> f64 {
        if self.calls > 0.0 { self.bytes / self.calls } else { 0.0 }
    }
}

/// Positions are read a moment before or after the totals: they may differ by one part in so many.
const APART: f64 = 32.0;
/// What a process did in this part of a burst, at its end or its beginning, it may have done in the pause as well.
const NEAR: f64 = 0.25;
const NEAR_LEAST_S: f64 = 0.001;
/// A process that ended unseen did what it had done before if its calls were of the same size, up to this factor.
const ALIKE: f64 = 1.25;

/// What went through each stream in this direction; None: it is not known through which. `after` is what was seen next.
pub(super) fn shares(pause: &Pause, after: &Burst, direction: Direction) -> Vec<(Option<Place>, Amount)> {
    let (calls, bytes) = match direction {
        Direction::In => (pause.moved.read_calls, pause.moved.read_bytes),
        _ => (pause.moved.write_calls, pause.moved.written_bytes),
    };
    if calls == 0 {
        return Vec::new();
    }
    let whole = Amount { calls: calls as f64, bytes: bytes as f64 };
    let view = View { pause, after, direction };
    let placed = view.by_position(whole);
    let mut rest = whole.bytes - placed.iter().map(|one| one.1.bytes).sum::<f64>();
    if rest <= whole.bytes / APART {
        rest = 0.0;
    }
    if rest == 0.0 && !placed.is_empty() {
        return scaled(placed, whole);
    }
    let guessed: f64 = placed.iter().map(|one| one.1.calls).sum();
    let left = Amount { calls: (whole.calls - guessed).max(whole.calls / 100.0), bytes: rest };
    let others = view.by_activity(left, &placed).unwrap_or_else(|| vec![(None, left)]);
    scaled(placed.into_iter().chain(others).collect(), whole)
}

/// So that they are the whole.
fn scaled(mut shares: Vec<(Option<Place>, Amount)>, whole: Amount) -> Vec<(Option<Place>, Amount)> {
    let mut sum = Amount::default();
    shares.iter().for_each(|one| sum.add(one.1));
    let factor = |of: f64, sum: f64| if sum > 0.0 { of / sum } else { 0.0 };
    let (calls, bytes) = (factor(whole.calls, sum.calls), factor(whole.bytes, sum.bytes));
    for (_, amount) in &mut shares {
        *amount = Amount { calls: amount.calls * calls, bytes: amount.bytes * bytes };
    }
    shares
}

struct View<'a> {
    pause: &'a Pause,
    after: &'a Burst,
    direction: Direction,
}

impl View<'_> {
    /// Files that have moved on by as much as was moved, or less. Others may have moved them: then they say nothing.
    fn by_position(&self, whole: Amount) -> Vec<(Option<Place>, Amount)> {
        let empty = Table::default();
        let table = self.pause.table.as_ref().unwrap_or(&empty);
        let mut placed = self.moved_on(whole, table.kept.iter().chain(&table.new));
        let sum = |placed: &[(Option<Place>, Amount)]| placed.iter().map(|one| one.1.bytes).sum::<f64>();
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
        placed
    }

    fn moved_on<'t>(
        &self,
        whole: Amount,
        places: impl Iterator<Item = (&'t Place, &'t Kept)>,
    ) -> Vec<(Option<Place>, Amount)> {
        let other_bytes = match self.direction {
            Direction::In => self.pause.moved.written_bytes,
            _ => self.pause.moved.read_bytes,
        };
        let fits = |kept: &Kept| kept.way.map_or(other_bytes == 0, |way| way == self.direction);
        let mut seen = HashSet::new();
        let mut placed = Vec::new();
        let mut places: Vec<(&Place, &Kept)> = places.collect();
        places.sort_by_key(|one| *one.0);
        for (&(fd, file), kept) in places {
            // Two descriptors of one open file have one position.
            let advance = kept.advance.filter(|advance| *advance > 0 && fits(kept));
            if let Some(advance) = advance.filter(|_| seen.insert(file)) {
                let bytes = advance as f64;
                let calls = bytes / self.mean_of((fd, file)).unwrap_or(whole.mean()).max(1.0);
                placed.push((Some((fd, file)), Amount { calls, bytes }));
            }
        }
        placed
    }

    fn mean_of(&self, place: Place) -> Option<f64> {
        let sum = self.activity(place);
        Some(sum.mean()).filter(|mean| *mean > 0.0)
    }

    fn activity(&self, place: Place) -> Amount {
        let mut sum = Amount::default();
        for burst in [&self.pause.before, self.after] {
            if let Some(one) = burst.get(&(place, self.direction)) {
                sum.add(Amount { calls: one.calls as f64, bytes: one.bytes as f64 });
            }
        }
        sum
    }

    /// In the shares of the bursts around the pause, if the process did the same before and after.
    fn by_activity(
        &self,
        left: Amount,
        placed: &[(Option<Place>, Amount)],
    ) -> Option<Vec<(Option<Place>, Amount)>> {
        let (places, ended) = self.candidates(left, placed)?;
        let mut sum = Amount::default();
        let parts: Vec<(Place, Amount)> =
            places.into_iter().map(|place| (place, self.activity(place))).collect();
        parts.iter().for_each(|part| sum.add(part.1));
        let ratio = left.mean().max(sum.mean()) / left.mean().min(sum.mean()).max(f64::MIN_POSITIVE);
        // No file has more than is in it behind the place where it stood.
        let room = |place: &Place| self.pause.gone.get(place).and_then(|gone| gone.advance);
        let most =
            parts.iter().map(|(place, _)| room(place).map_or(f64::INFINITY, |room| room as f64)).sum::<f64>();
        let fits = ratio <= ALIKE && (self.direction == Direction::Out || left.bytes <= most);
        if sum.calls <= 0.0 || ended && !fits {
            return None;
        }
        let share = |amount: Amount| {
            let calls = amount.calls / sum.calls;
            Amount {
                calls: left.calls * calls,
                bytes: left.bytes * if sum.bytes > 0.0 { amount.bytes / sum.bytes } else { calls },
            }
        };
        Some(parts.into_iter().map(|(place, amount)| (Some(place), share(amount))).collect())
    }

    /// Streams that may have gone on in the pause, and whether they had come to their end by then; None: the process opened
    /// and closed others about then.
    fn candidates(&self, left: Amount, placed: &[(Option<Place>, Amount)]) -> Option<(Vec<Place>, bool)> {
        let before = self.near_before();
        let after = self.near_after();
        let around = || before.iter().chain(&after);
        if around().any(|(_, active)| active.apart) {
            return None;
        }
        let is_placed = |place: &Place| placed.iter().any(|one| one.0 == Some(*place));
        let until_their_ends = || {
            let goes_on = |one: &(Place, Active)| self.pause.open.contains(&one.0) && !is_placed(&one.0);
            let all = !before.is_empty() && before.iter().all(goes_on);
            all.then(|| (before.iter().map(|one| one.0).collect(), true))
        };
        let Some(table) = &self.pause.table else { return until_their_ends() };
        let known = |place: &Place| table.kept.contains_key(place);
        let opened = |place: &Place| known(place) || table.new.contains_key(place);
        let here = |kept: &&Kept| kept.way.is_none_or(|way| way == self.direction);
        let goes = |kept: &Kept| kept.advance.is_none() && here(&kept);
        let gone = before.iter().any(|one| !known(&one.0));
        if gone && after.is_empty() && !table.new.values().any(|kept| here(&kept)) {
            return until_their_ends();
        }
        let changes = gone || after.iter().any(|one| !opened(&one.0)) || table.new.values().any(goes);
        let mut places: Vec<Place> = around().map(|one| one.0).collect();
        places.sort_unstable();
        places.dedup();
        let both =
            |place: &Place| [&before, &after].iter().all(|side| side.iter().any(|one| one.0 == *place));
        // A file that has moved on by less did not get it, unless its calls do not move it on; by more, others were at it.
        let fits = |kept: &Kept, advance: i64| {
            advance == 0 && kept.still || advance as f64 >= left.bytes * (1.0 - 1.0 / APART)
        };
        let may = |place: &Place| {
            let kept = table.kept.get(place);
            let moved = kept.and_then(|kept| Some((kept, kept.advance?)));
            moved.is_none_or(|(kept, advance)| both(place) && fits(kept, advance))
        };
        places.retain(|place| may(place) && !is_placed(place));
        (!changes && !places.is_empty()).then_some((places, false))
    }

    fn near_before(&self) -> Vec<(Place, Active)> {
        let pause = self.pause;
        let since_s = pause.from_s - ((pause.from_s - pause.looked_s) * NEAR).max(NEAR_LEAST_S);
        self.near(&pause.before, |active| active.last_s >= since_s)
    }

    fn near_after(&self) -> Vec<(Place, Active)> {
        let end_s = self.after.values().map(|active| active.last_s).fold(self.pause.to_s, f64::max);
        let until_s = self.pause.to_s + ((end_s - self.pause.to_s) * NEAR).max(NEAR_LEAST_S);
        self.near(self.after, |active| active.first_s <= until_s)
    }

    fn near(&self, burst: &Burst, is: impl Fn(&Active) -> bool) -> Vec<(Place, Active)> {
        let here = burst
            .iter()
            .filter(|((_, way), active)| *way == self.direction && active.calls > 0 && is(active));
        here.map(|((place, _), active)| (*place, *active)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{In, Out};

    fn burst(streams: &[(Place, Direction, u64, u64)]) -> Burst {
        let active = |calls, bytes| Active { calls, bytes, first_s: 1.0, last_s: 1.0, apart: false };
        streams.iter().map(|&(place, way, calls, bytes)| ((place, way), active(calls, bytes))).collect()
    }

    /// From 1.0 to 2.0, behind a burst of a tenth.
    fn pause(moved: (u64, u64), before: &[(Place, Direction, u64, u64)], table: Option<Table>) -> Pause {
        let open = before.iter().map(|one| one.0).collect();
        let moved = IoTotals { read_calls: moved.0, read_bytes: moved.1, ..IoTotals::default() };
        Pause {
            from_s: 1.0,
            to_s: 2.0,
            looked_s: 0.9,
            moved,
            before: burst(before),
            table,
            gone: HashMap::new(),
            open,
        }
    }

    fn table(kept: &[(Place, Option<i64>)], new: &[(Place, Option<i64>)]) -> Table {
        let of = |list: &[(Place, Option<i64>)]| -> HashMap<Place, Kept> {
            list.iter()
                .map(|&(place, advance)| (place, Kept { advance, way: Some(In), still: false }))
                .collect()
        };
        let numbers = kept.iter().chain(new).map(|one| one.0.0).collect();
        Table { kept: of(kept), new: of(new), numbers }
    }

    fn rounded(shares: Vec<(Option<Place>, Amount)>) -> Vec<(Option<Place>, u64, u64)> {
        let mut all: Vec<_> = shares
            .into_iter()
            .map(|(place, amount)| (place, amount.calls.round() as u64, amount.bytes.round() as u64))
            .collect();
        all.sort_unstable();
        all
    }

    const FILE: Place = (3, 7);
    const PIPE: Place = (0, 1);

    #[test]
    fn a_file_got_as_much_as_it_has_moved_on() {
        let before = [(FILE, In, 100, 100)];
        let seen = pause((5000, 5000), &before, Some(table(&[(FILE, Some(5000))], &[])));
        assert_eq!(rounded(shares(&seen, &Burst::new(), In)), [(Some(FILE), 5000, 5000)]);
        assert_eq!(shares(&seen, &Burst::new(), Out), []);
        // Read a moment later.
        let seen = pause((5000, 5000), &before, Some(table(&[(FILE, Some(5080))], &[])));
        assert_eq!(rounded(shares(&seen, &Burst::new(), In)), [(Some(FILE), 5000, 5000)]);
    }

    #[test]
    fn what_was_opened_and_closed_in_it_is_not_known() {
        let before = [(FILE, In, 10, 40_960), (PIPE, In, 10, 10)];
        // Another file has the number by now, and stands where it was read to.
        let other = (3, 8);
        let seen = pause((1000, 4_096_000), &before, Some(table(&[(PIPE, None)], &[(other, Some(8192))])));
        let found = rounded(shares(&seen, &burst(&[(other, In, 2, 8192)]), In));
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], (None, 998, 4_087_808));
        assert_eq!(found[1], (Some(other), 2, 8192));
    }

    #[test]
    fn a_pipe_goes_on_if_nothing_else_was_done_before_and_after() {
        let (before, after) = ([(PIPE, In, 100, 300)], burst(&[(PIPE, In, 100, 300)]));
        let seen = pause((1000, 3000), &before, Some(table(&[(PIPE, None)], &[])));
        assert_eq!(rounded(shares(&seen, &after, In)), [(Some(PIPE), 1000, 3000)]);
        // It read files of a moment, too.
        let churns = pause((1000, 3000), &[before[0], (FILE, In, 5, 50)], Some(table(&[(PIPE, None)], &[])));
        assert_eq!(rounded(shares(&churns, &after, In)), [(None, 1000, 3000)]);
        // So it did afterwards.
        let churns = burst(&[(PIPE, In, 100, 300), ((9, 90), In, 1, 1)]);
        let churns: Burst =
            churns.into_iter().map(|(key, one)| (key, Active { first_s: 2.0, last_s: 2.5, ..one })).collect();
        assert_eq!(rounded(shares(&seen, &churns, In)), [(None, 1000, 3000)]);
        // Of a socket the kernel does not count every call.
        let mut socket = burst(&[(PIPE, In, 100, 300)]);
        socket.values_mut().for_each(|one| one.apart = true);
        assert_eq!(rounded(shares(&seen, &socket, In)), [(None, 1000, 3000)]);
    }

    #[test]
    fn a_beginning_is_no_change_once_it_is_over() {
        let mut seen = pause(
            (1000, 3000),
            &[(PIPE, In, 100, 300), (FILE, In, 5, 50)],
            Some(table(&[(PIPE, None)], &[])),
        );
        seen.before.get_mut(&(FILE, In)).unwrap().last_s = 0.91;
        assert_eq!(rounded(shares(&seen, &Burst::new(), In)), [(Some(PIPE), 1000, 3000)]);
    }

    #[test]
    fn who_ended_unseen_went_on_if_its_calls_were_as_large() {
        let before = [(FILE, In, 100, 100)];
        assert_eq!(
            rounded(shares(&pause((500, 500), &before, None), &Burst::new(), In)),
            [(Some(FILE), 500, 500)]
        );
        assert_eq!(
            rounded(shares(&pause((500, 9000), &before, None), &Burst::new(), In)),
            [(None, 500, 9000)]
        );
        assert_eq!(rounded(shares(&pause((5, 900), &[], None), &Burst::new(), In)), [(None, 5, 900)]);
    }

    #[test]
    fn a_file_that_was_closed_in_it_got_what_it_is_longer() {
        let gone = |way, advance| {
            HashMap::from([(FILE, Kept { advance: Some(advance), way: Some(way), still: false })])
        };
        let mut seen = pause((100, 5000), &[], Some(table(&[(PIPE, None)], &[])));
        seen.gone = gone(In, 5000);
        assert_eq!(rounded(shares(&seen, &Burst::new(), In)), [(Some(FILE), 100, 5000)], "read to its end");
        seen.gone = gone(In, 3000);
        assert_eq!(rounded(shares(&seen, &Burst::new(), In)), [(None, 100, 5000)], "or not to its end");
        seen.moved = IoTotals { write_calls: 100, written_bytes: 5000, ..IoTotals::default() };
        seen.gone = gone(Out, 3000);
        assert_eq!(rounded(shares(&seen, &Burst::new(), Out)), [(None, 40, 2000), (Some(FILE), 60, 3000)]);
        seen.gone = gone(Out, 6000);
        assert_eq!(rounded(shares(&seen, &Burst::new(), Out)), [(None, 100, 5000)], "others wrote into it");
    }

    #[test]
    fn a_file_that_others_move_too_says_nothing_by_its_position() {
        let before = [(FILE, In, 100, 300)];
        let seen = pause((10, 30), &before, Some(table(&[(FILE, Some(5000))], &[])));
        let after = burst(&[(FILE, In, 100, 300)]);
        assert_eq!(rounded(shares(&seen, &after, In)), [(Some(FILE), 10, 30)]);
        assert_eq!(rounded(shares(&seen, &Burst::new(), In)), [(None, 10, 30)]);
    }

    #[test]
    fn a_file_that_has_not_moved_on_was_not_read_unless_that_does_not_move_it() {
        let (before, after) = ([(FILE, In, 100, 300)], burst(&[(FILE, In, 100, 300)]));
        // Closed, and opened again: it stands where it stood by chance.
        let mut seen = pause((1000, 3000), &before, Some(table(&[(FILE, Some(0))], &[])));
        assert_eq!(rounded(shares(&seen, &after, In)), [(None, 1000, 3000)]);
        seen.table.as_mut().unwrap().kept.get_mut(&FILE).unwrap().still = true;
        assert_eq!(rounded(shares(&seen, &after, In)), [(Some(FILE), 1000, 3000)]);
    }
}
