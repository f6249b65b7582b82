//! Chooses the cells of the next round: at first all, then those with the widest intervals, always together with the
//! cells that they are compared with.

use weir_model::Summary;

use crate::plan::Cell;
use crate::run::{SAMPLE_S, Sample, Track};
use weir_model::bench::Round;

/// Number of cells measured twice per round, to estimate the noise: small, medium and large records.
pub const TWINS: usize = 3;
/// Number of first rounds in which every cell is measured.
const FULL_ROUNDS: usize = 5;

/// A sample to take in the next round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleRequest {
    /// Index of the cell in the plan.
    pub cell: usize,
    /// Whether this is the second sample of the cell in the round.
    pub twin: bool,
}

/// Gives a twin to the first, middle and last measurable cell of a method: small, medium and large records.
pub fn choose_twins(tracks: &mut [Track]) {
    let usable: Vec<usize> = (0..tracks.len()).filter(|&i| tracks[i].cannot.is_none()).collect();
    // All twins have the same method, so that they are points of one curve.
    let Some(&first) = usable.first() else { return };
    let method = tracks[first].cell.method.clone();
    let same: Vec<usize> = usable.into_iter().filter(|&i| tracks[i].cell.method == method).collect();
    for index in [0, same.len() / 2, same.len() - 1] {
        tracks[same[index]].has_twin = true;
    }
}

/// Shortens the samples if fewer than `rounds` rounds fit into `left_s`, because process start, preparation and
/// clean-up took longer than estimated. No sample becomes shorter than the clock can resolve.
pub fn fit_to_budget(tracks: &mut [Track], left_s: f64, rounds: f64) {
    let samples = |track: &Track| if track.has_twin { 2.0 } else { 1.0 };
    let usable = || tracks.iter().filter(|track| track.cannot.is_none());
    let work: f64 = usable().map(|track| track.work_s * samples(track)).sum();
    let around: f64 = usable().map(|track| (track.wall_s - track.work_s) * samples(track)).sum();
    let share = (left_s / rounds - around) / work.max(1e-9);
    if share >= 1.0 {
        return;
    }
    for track in tracks.iter_mut().filter(|track| track.work_s > SAMPLE_S.0) {
        let share = share.max(SAMPLE_S.0 / track.work_s);
        let unit = track.cell.unit_bytes();
        let bytes = ((track.measured_bytes as f64 * share) as u64).div_ceil(unit).saturating_mul(unit);
        let bytes = bytes.clamp(1, track.measured_bytes);
        let kept_s = track.work_s * bytes as f64 / track.measured_bytes as f64;
        track.wall_s -= track.work_s - kept_s;
        track.work_s = kept_s;
        track.measured_bytes = bytes;
    }
}

/// Returns the samples of rounds that were not repeated; all samples if every round was repeated.
pub fn kept<'a>(samples: &'a [Sample], rounds: &[Round]) -> Vec<&'a Sample> {
    let undisturbed: Vec<&Sample> = samples
        .iter()
        .filter(|sample| !rounds.get(sample.round).is_some_and(|round| round.repeated))
        .collect();
    if undisturbed.is_empty() { samples.iter().collect() } else { undisturbed }
}

fn elapsed(track: &Track, rounds: &[Round]) -> Option<Summary> {
    let seconds: Vec<f64> =
        kept(&track.samples, rounds).iter().map(|sample| sample.figures.elapsed_s).collect();
    Summary::of(&seconds)
}

/// Returns every cell until `wanted` rounds count, then none.
pub fn all_until(tracks: &[Track], rounds: &[Round], wanted: usize) -> Vec<SampleRequest> {
    let counted = rounds.iter().filter(|round| !round.repeated).count();
    let usable = (0..tracks.len()).filter(|&i| tracks[i].cannot.is_none() && counted < wanted);
    with_twins(tracks, usable.collect())
}

/// Returns the next round's samples, unordered; none if the run is complete.
pub fn choose(tracks: &[Track], rounds: &[Round], left_s: f64, precision: f64) -> Vec<SampleRequest> {
    let usable: Vec<usize> = (0..tracks.len()).filter(|&i| tracks[i].cannot.is_none()).collect();
    let counted = rounds.iter().filter(|round| !round.repeated).count();
    if usable.iter().any(|&i| tracks[i].samples.is_empty()) && counted == 0 {
        return with_twins(tracks, usable);
    }
    if left_s <= 0.0 {
        return Vec::new();
    }
    if counted < FULL_ROUNDS {
        return with_twins(tracks, usable);
    }
    let summaries: Vec<(usize, Summary)> =
        usable.iter().filter_map(|&i| Some((i, elapsed(&tracks[i], rounds)?))).collect();
    let mut wide: Vec<(usize, f64)> = summaries
        .iter()
        .map(|(i, s)| (*i, s.relative_half_width()))
        .filter(|(_, width)| *width > precision)
        .collect();
    wide.sort_by(|a, b| b.1.total_cmp(&a.1));
    let compared = compared_with(tracks, &summaries);
    let mut cells: Vec<usize> = compared;
    let mut cost: f64 =
        with_twins(tracks, cells.clone()).iter().map(|request| tracks[request.cell].wall_s).sum();
    let mut added = 0;
    for (i, _) in wide {
        if cells.contains(&i) {
            added += 1;
        } else if cost + tracks[i].wall_s <= left_s {
            cost += tracks[i].wall_s;
            cells.push(i);
            added += 1;
        }
    }
    if added == 0 || cost > left_s { Vec::new() } else { with_twins(tracks, cells) }
}

/// Returns the cells of every round: the fastest of each group, which is the denominator of ratios, and those with
/// twins.
fn compared_with(tracks: &[Track], summaries: &[(usize, Summary)]) -> Vec<usize> {
    let mut best: Vec<(usize, f64)> = Vec::new();
    for (i, summary) in summaries {
        let known = best.iter_mut().find(|(j, _)| same_group(&tracks[*i].cell, &tracks[*j].cell));
        match known {
            Some(known) if known.1 > summary.median => *known = (*i, summary.median),
            Some(_) => {}
            None => best.push((*i, summary.median)),
        }
    }
    let mut cells: Vec<usize> = best.into_iter().map(|(i, _)| i).collect();
    cells.extend((0..tracks.len()).filter(|&i| tracks[i].has_twin));
    cells.sort_unstable();
    cells.dedup();
    cells
}

fn same_group(a: &Cell, b: &Cell) -> bool {
    (a.directory, a.workload, a.sync, a.cache, a.advice, a.bytes)
        == (b.directory, b.workload, b.sync, b.cache, b.advice, b.bytes)
}

fn with_twins(tracks: &[Track], cells: Vec<usize>) -> Vec<SampleRequest> {
    let twins: Vec<SampleRequest> = cells
        .iter()
        .filter(|&&i| tracks[i].has_twin)
        .map(|&cell| SampleRequest { cell, twin: true })
        .collect();
    cells.into_iter().map(|cell| SampleRequest { cell, twin: false }).chain(twins).collect()
}

/// Returns whether a disturbed round is repeated. At most every third round is: on a machine that is never idle, the
/// disturbed rounds are kept and counted.
pub fn repeat(round: &Round, before: &[Round]) -> bool {
    let repeated = before.iter().filter(|round| round.repeated).count();
    !round.disturbed.is_empty() && (repeated + 1) * 3 <= before.len() + 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_first_rounds_have_every_cell_and_the_twins() {
        let measurement = fixture::measurement(&[fixture::axes()], 0);
        let requests = choose(&measurement.tracks, &[], 10.0, 0.02);
        assert_eq!(requests.len(), measurement.tracks.len() + TWINS);
        assert_eq!(requests.iter().filter(|request| request.twin).count(), TWINS);
        let out_of_time = choose(&measurement.tracks, &[], 0.0, 0.02);
        assert_eq!(out_of_time.len(), requests.len(), "each cell gets one sample, however short the budget");
    }

    #[test]
    fn samples_are_cut_until_enough_rounds_fit() {
        let mut tracks = fixture::measurement(&[fixture::axes()], 0).tracks;
        tracks.iter_mut().for_each(|track| (track.wall_s, track.work_s) = (0.12, 0.1));
        let before = tracks.clone();
        fit_to_budget(&mut tracks, 60.0, 12.0);
        assert_eq!(tracks[0].measured_bytes, before[0].measured_bytes, "it fits");
        fit_to_budget(&mut tracks, 12.0, 12.0);
        let a_round: f64 =
            tracks.iter().map(|track| track.wall_s * if track.has_twin { 2.0 } else { 1.0 }).sum();
        assert!((a_round * 12.0 - 12.0).abs() < 0.5, "{a_round}");
        assert!(
            tracks
                .iter()
                .all(|track| track.measured_bytes % track.cell.unit_bytes() == 0 && track.measured_bytes > 0)
        );
        fit_to_budget(&mut tracks, 0.1, 12.0);
        assert!(tracks.iter().all(|track| track.work_s >= SAMPLE_S.0 * 0.99), "never below the limit");
    }

    #[test]
    fn later_rounds_go_where_intervals_are_wide() {
        let mut measurement = fixture::measurement(&[fixture::axes()], 6);
        for (i, sample) in measurement.tracks[5].samples.iter_mut().enumerate() {
            sample.figures.elapsed_s *= 1.0 + 0.2 * i as f64;
        }
        // The slow round widens every interval a little; the spread cell's is the widest by far.
        let requests = choose(&measurement.tracks, &measurement.rounds, 10.0, 0.30);
        assert!(requests.iter().any(|request| request.cell == 5));
        assert!(requests.len() < measurement.tracks.len(), "{} requests", requests.len());
        let best = measurement
            .tracks
            .iter()
            .position(|t| t.cell.record_bytes == 65536 && t.cell.method == "syscall")
            .unwrap();
        assert!(
            requests.iter().any(|request| request.cell == best && !request.twin),
            "ratios need the best row"
        );
        assert_eq!(requests.iter().filter(|request| request.twin).count(), TWINS);
    }

    #[test]
    fn a_requested_number_of_rounds_is_exact() {
        let measurement = fixture::measurement(&[fixture::axes()], 3);
        assert_eq!(
            all_until(&measurement.tracks, &measurement.rounds, 4).len(),
            measurement.tracks.len() + TWINS
        );
        assert_eq!(all_until(&measurement.tracks, &measurement.rounds, 3), []);
        let mut rounds = measurement.rounds.clone();
        rounds[0].repeated = true;
        assert!(!all_until(&measurement.tracks, &rounds, 3).is_empty(), "a repeated round does not count");
    }

    #[test]
    fn rounds_end_at_the_precision_or_at_the_end_of_the_budget() {
        let measurement = fixture::measurement(&[fixture::axes()], 6);
        assert_eq!(choose(&measurement.tracks, &measurement.rounds, 10.0, 2.0), []);
        assert_eq!(choose(&measurement.tracks, &measurement.rounds, 0.0, 0.0), []);
        assert_eq!(
            choose(&measurement.tracks, &measurement.rounds, 0.2, 0.0),
            [],
            "no time for the cells of every round"
        );
    }

    #[test]
    fn disturbed_rounds_are_repeated_but_not_for_ever() {
        let disturbed = Round { disturbed: vec!["steal".into()], ..Round::default() };
        let mut before: Vec<Round> = Vec::new();
        for _ in 0..30 {
            let round = Round { repeated: repeat(&disturbed, &before), ..disturbed.clone() };
            before.push(round);
        }
        let repeated = before.iter().filter(|round| round.repeated).count();
        assert!((9..=11).contains(&repeated), "{repeated} of 30");
        assert!(!repeat(&Round::default(), &[]));
    }

    #[test]
    fn samples_of_repeated_rounds_count_only_without_others() {
        let measurement = fixture::measurement(&[fixture::axes()], 3);
        let mut rounds = measurement.rounds.clone();
        rounds[2].repeated = true;
        assert_eq!(kept(&measurement.tracks[0].samples, &rounds).len(), 2);
        rounds.iter_mut().for_each(|round| round.repeated = true);
        assert_eq!(kept(&measurement.tracks[0].samples, &rounds).len(), 3);
    }
}
