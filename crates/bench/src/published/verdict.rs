//! Compares the order of a published table's rows, and the record at which its gains stop, with this machine's.

use weir_model::bench::{BenchRow, PublishedRow, ratio};
use weir_model::duration::three_digits;
use weir_model::knee::TOLERANCE;
use weir_model::{Size, distinct, estimate};

/// Smallest number of record sizes that show where gains stop.
const SIZES_OF_A_CURVE: usize = 3;

/// A published row that this run measured.
pub(super) struct Both<'a> {
    pub published: &'a PublishedRow,
    pub ours: &'a BenchRow,
}

/// Numbers of pairs of rows by their order in the published table (there) and in this run (here). Published rows within 5 % of each
/// other are equal; rows of this run are equal if their ratio is a tie, or within 5 %.
#[derive(Default)]
struct Pairs {
    same: usize,
    opposite: usize,
    equal_there: usize,
    equal_here: usize,
}

/// The records at which the gains of one method stop, in bytes.
struct Stops<'a> {
    method: &'a str,
    there: u64,
    here: u64,
    largest: u64,
}

/// Returns the agreement and the differences of two or more rows in sentences. `same_work` means that the times are of the same bytes.
pub(super) fn verdict(both: &[Both], noise: f64, same_work: bool) -> Vec<String> {
    let noise = noise.max(TOLERANCE);
    let pairs = Pairs::of(both, noise);
    let stops = stops(both, noise);
    let mut said = vec![format!("{}: {}", shape(&pairs, &stops), pairs.text())];
    said.extend(stops.iter().map(Stops::text));
    said.extend(fall(both, noise));
    if same_work {
        let (slow, fast) = both.iter().fold((f64::INFINITY, 0.0f64), |(slow, fast), row| {
            let times = row.published.ours_s.map_or(f64::NAN, |ours| row.published.theirs_s / ours);
            (slow.min(times), fast.max(times))
        });
        let [slow, fast] = [slow, fast].map(three_digits);
        said.push(format!("the machine: its rows take {slow} to {fast} times ours"));
    }
    said
}

/// Returns whether order and end of the gains agree, in a few words.
fn shape(pairs: &Pairs, stops: &[Stops]) -> &'static str {
    let (same, all) = (pairs.same as f64, (pairs.same + pairs.opposite) as f64);
    match stops.iter().all(|stops| stops.there == stops.here) {
        _ if all == 0.0 => "the order cannot be compared",
        true if same == all && !stops.is_empty() => "the same shape",
        false if same == all => "the same order, but another shape",
        true if same == all => "the same order",
        _ if same >= 0.9 * all => "almost the same order",
        _ if same >= 0.6 * all => "partly the same order",
        _ => "another order",
    }
}

impl Pairs {
    fn of(both: &[Both], noise: f64) -> Self {
        let mut pairs = Self::default();
        for (at, a) in both.iter().enumerate() {
            for b in &both[at + 1..] {
                let there = a.published.theirs_s / b.published.theirs_s;
                let here = ratio(a.ours, b.ours).filter(|ratio| !ratio.is_tie(noise));
                match (is_equal(there), here) {
                    (true, None) => {}
                    (true, Some(_)) => pairs.equal_there += 1,
                    (false, None) => pairs.equal_here += 1,
                    (false, Some(here)) if (here.value > 1.0) == (there > 1.0) => pairs.same += 1,
                    (false, Some(_)) => pairs.opposite += 1,
                }
            }
        }
        pairs
    }

    fn text(&self) -> String {
        let decided = self.same + self.opposite;
        let mut text = match decided {
            0 => "no two rows differ on both sides".into(),
            1 => format!(
                "the one pair of rows that differs on both sides is in {} order",
                match self.same {
                    1 => "the same",
                    _ => "another",
                }
            ),
            _ => format!(
                "{} of the {decided} pairs of rows that differ on both sides are in the same order",
                self.same
            ),
        };
        for (count, where_equal) in [(self.equal_there, "there only"), (self.equal_here, "here only")] {
            if count > 0 {
                text +=
                    &format!("; {count} more {} equal {where_equal}", if count == 1 { "is" } else { "are" });
            }
        }
        text
    }
}

fn is_equal(ratio: f64) -> bool {
    ratio.max(1.0 / ratio) <= 1.0 + TOLERANCE
}

/// Returns where the gains of each method stop, there and here, if enough of its record sizes were measured.
fn stops<'a>(both: &[Both<'a>], noise: f64) -> Vec<Stops<'a>> {
    let methods = distinct(both.iter().map(|row| row.published.method.as_str()));
    let of_method = |method: &'a str| {
        let mut own: Vec<&Both> = both.iter().filter(|row| row.published.method == method).collect();
        own.sort_by_key(|row| row.published.record_bytes);
        let largest = own.last().filter(|_| own.len() >= SIZES_OF_A_CURVE)?.published.record_bytes;
        let least = own.iter().map(|row| row.published.theirs_s).fold(f64::INFINITY, f64::min);
        let fastest = own.iter().min_by(|a, b| ours_s(a).total_cmp(&ours_s(b)))?.ours;
        let is_enough = |row: &&&Both| {
            std::ptr::eq(row.ours, fastest)
                || ratio(row.ours, fastest).is_some_and(|ratio| ratio.is_tie(noise))
        };
        let there = own.iter().find(|row| row.published.theirs_s <= least * (1.0 + TOLERANCE))?;
        let here = own.iter().find(is_enough)?;
        Some(Stops {
            method,
            there: there.published.record_bytes,
            here: here.published.record_bytes,
            largest,
        })
    };
    methods.into_iter().filter_map(of_method).collect()
}

fn ours_s(row: &Both) -> f64 {
    row.published.ours_s.unwrap_or(f64::INFINITY)
}

impl Stops<'_> {
    fn text(&self) -> String {
        let at = |bytes: u64, side: &str| match bytes < self.largest {
            true => format!("stop at {} {side}", Size(bytes)),
            false => format!("do not stop up to {} {side}", Size(bytes)),
        };
        let gains = format!("gains of {} beyond 5 %", self.method);
        match self.there == self.here {
            true => format!("{gains} {}", at(self.there, "on both sides")),
            false => format!("{gains} {}, but {}", at(self.there, "there"), at(self.here, "here")),
        }
    }
}

/// Compares the first with the last record size, there and here.
fn fall(both: &[Both], noise: f64) -> Option<String> {
    let (first, last) = (both.first()?, both.last()?);
    let (a, b) = (first.published, last.published);
    if a.record_bytes == b.record_bytes || a.method != b.method {
        return None;
    }
    let here = ratio(first.ours, last.ours)?;
    let tie = if here.is_tie(noise) { ", within the noise" } else { "" };
    Some(format!(
        "the time of {} with {} is {}× that with {} there, {} here{tie}",
        a.method,
        Size(a.record_bytes),
        three_digits(a.theirs_s / b.theirs_s),
        Size(b.record_bytes),
        estimate::ratio(&here)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::Summary;

    /// Returns the verdict on rows of (record, seconds there, seconds here).
    fn of(rows: &[(u64, f64, f64)]) -> Vec<String> {
        of_methods(&["syscall"], rows)
    }

    /// As [`of`], of methods that take turns.
    fn of_methods(methods: &[&str], rows: &[(u64, f64, f64)]) -> Vec<String> {
        let blank = crate::fixture::run(&[crate::fixture::axes()], 1).rows.remove(0);
        let mut turns = methods.iter().cycle();
        let published = |&(record_bytes, theirs_s, ours): &(u64, f64, f64)| PublishedRow {
            method: (*turns.next().expect("a method")).into(),
            record_bytes,
            theirs_s,
            ours_s: Some(ours),
            theirs_vs_best: 1.0,
            ours_vs_best: None,
        };
        let ours = |&(_, _, seconds): &(u64, f64, f64)| BenchRow {
            elapsed_s: Summary::of(&[seconds; 5]),
            samples_s: vec![seconds; 5],
            rounds_of: (0..5).collect(),
            ..blank.clone()
        };
        let published: Vec<PublishedRow> = rows.iter().map(published).collect();
        let ours: Vec<BenchRow> = rows.iter().map(ours).collect();
        let both: Vec<Both> =
            published.iter().zip(&ours).map(|(published, ours)| Both { published, ours }).collect();
        verdict(&both, 0.01, true)
    }

    #[test]
    fn a_flat_end_there_is_another_shape_than_a_falling_one_here() {
        let flat = [(1, 107.0, 60.0), (64, 2.06, 1.0), (4096, 2.05, 0.1), (65536, 2.05, 0.05)];
        let said = of(&flat);
        assert_eq!(
            said[0],
            "the same order, but another shape: 3 of the 3 pairs of rows that differ on both sides are in the same order; \
             3 more are equal there only"
        );
        assert_eq!(
            said[1],
            "gains of syscall beyond 5 % stop at 64 B there, but do not stop up to 64 KiB here"
        );
        assert_eq!(
            said[2],
            "the time of syscall with 1 B is 52.2× that with 64 KiB there, 1200× [1200, 1200] here"
        );
        assert_eq!(said[3], "the machine: its rows take 1.78 to 41.0 times ours");
    }

    #[test]
    fn the_gains_of_methods_that_take_turns_stop_once_each() {
        let turns: Vec<(u64, f64, f64)> = [(1, 100.0), (64, 2.0), (4096, 1.0)]
            .into_iter()
            .flat_map(|(record, seconds)| [(record, seconds, seconds), (record, seconds, seconds)])
            .collect();
        let said = of_methods(&["read", "getc"], &turns);
        let of = |method: &str| {
            said.iter().filter(|text| text.starts_with(&format!("gains of {method} "))).count()
        };
        assert_eq!((of("read"), of("getc")), (1, 1), "{said:?}");
    }

    #[test]
    fn the_same_shape_needs_the_same_order_and_the_same_end() {
        let same = of(&[(1, 100.0, 50.0), (64, 2.0, 1.0), (4096, 2.0, 1.0)]);
        assert!(same[0].starts_with("the same shape: 2 of the 2 pairs"), "{same:?}");
        assert_eq!(same[1], "gains of syscall beyond 5 % stop at 64 B on both sides");
        let turned = of(&[(1, 100.0, 1.0), (64, 2.0, 50.0), (4096, 1.0, 90.0)]);
        assert!(turned[0].starts_with("another order: 0 of the 3 pairs"), "{turned:?}");
        let equal = of(&[(1, 1.0, 1.0), (64, 1.0, 1.0)]);
        assert!(equal[0].starts_with("the order cannot be compared: no two rows differ"), "{equal:?}");
    }
}
