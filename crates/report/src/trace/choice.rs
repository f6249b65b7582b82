//! Chooses the streams of a report that get a row each.

use super::listed_stream::{ListContext, ListedStream};
use super::startup::StartupStreams;

/// Smallest share of the run's time that makes a stream important.
const MATTERS: f64 = 0.01;
/// Other input streams get a row if they have at least 1/20 of all calls or of all bytes …
const PART: u64 = 20;
/// … or 1/5 if not all streams fit: the totals by location say more than a few of many similar rows.
const LARGE_PART: u64 = 5;
/// Rank of output streams without a higher rank.
const OUTPUT: u8 = 3;
/// Largest number of streams of rank [`OUTPUT`] that get a row each if not all streams fit.
const OUTPUTS: usize = 4;

/// Returns the rank of a stream, 0 for the most important; `None` if it gets no row.
fn rank(stream: &ListedStream, context: &ListContext, much: (u64, u64)) -> Option<u8> {
    match () {
        () if stream.is_found(context.findings) => Some(0),
        () if stream.share >= MATTERS || stream.is_piped(context.pipelines) => Some(1),
        () if !stream.is_known() => is_much(stream, much).then_some(4),
        () if stream.fd <= 2 => Some(2),
        () if stream.writes() => Some(OUTPUT),
        () => is_much(stream, much).then_some(4),
    }
}

fn is_much(stream: &ListedStream, (calls, bytes): (u64, u64)) -> bool {
    stream.calls >= calls || stream.bytes >= bytes
}

/// The streams of a report by the way in which they are shown: indexes, ascending.
#[derive(Debug, Default)]
pub(super) struct ChosenStreams {
    /// Streams with a row each.
    pub rows: Vec<usize>,
    /// Streams of the start, in one line.
    pub startup: Vec<usize>,
    /// All others, which are summed.
    pub rest: Vec<usize>,
}

impl ChosenStreams {
    /// Returns the choice of all `number` streams.
    pub fn all(number: usize) -> Self {
        Self { rows: (0..number).collect(), ..Self::default() }
    }

    /// Chooses the `most` most important streams.
    pub fn of(streams: &[ListedStream], context: &ListContext, most: usize) -> Self {
        let startup = StartupStreams::of(context.processes);
        let (startup, candidates): (Vec<usize>, Vec<usize>) =
            (0..streams.len()).partition(|&index| startup.folds(&streams[index], context.findings));
        let rows = important(streams, context, most, &candidates);
        let rest = candidates.into_iter().filter(|index| rows.binary_search(index).is_err()).collect();
        Self { rows, startup, rest }
    }
}

/// Returns the `most` most important of some streams, ascending.
fn important(
    streams: &[ListedStream],
    context: &ListContext,
    most: usize,
    candidates: &[usize],
) -> Vec<usize> {
    let sum = |of: fn(&ListedStream) -> u64| streams.iter().map(of).sum::<u64>();
    let (calls, bytes) = (sum(|stream| stream.calls), sum(|stream| stream.bytes));
    let part = if candidates.len() <= most { PART } else { LARGE_PART };
    let much = (calls.div_ceil(part), bytes.div_ceil(part));
    let ranked = candidates.iter().filter_map(|&index| Some((rank(&streams[index], context, much)?, index)));
    let mut ranked: Vec<(u8, usize)> = ranked.collect();
    let outputs = ranked.iter().filter(|(rank, _)| *rank == OUTPUT).count();
    if candidates.len() > most && outputs > OUTPUTS {
        ranked.retain(|&(rank, index)| rank != OUTPUT || is_much(&streams[index], much));
    }
    ranked.sort_by(|&(rank, a), &(other, b)| {
        let (a, b) = (&streams[a], &streams[b]);
        rank.cmp(&other).then(b.cost_s.total_cmp(&a.cost_s)).then(b.bytes.cmp(&a.bytes))
    });
    let mut order: Vec<usize> = ranked.into_iter().map(|(_, index)| index).take(most).collect();
    order.sort_unstable();
    order
}
