//! Histograms of call sizes.

use weir_model::trace::{Histogram, StreamCounts, TraceStream};
use weir_model::{Finding, Size};

use super::labels::{direction_sign, process_label, thousands};
use super::listed_stream::ListedStream;
use crate::block::Block;
use crate::number::{ABSENT, whole_percent};
use crate::table::{Align, Bars, Column, Heading, Table, TableRow};

/// Largest number of histograms if not all are requested: they fit on one screen.
const MAX_HISTOGRAMS: usize = 3;
/// Smallest number of calls for a histogram. For fewer, the table of streams is enough.
const MIN_CALLS: u64 = 16;
/// Smallest share of the run's time for a histogram of a stream without findings.
const MIN_SHARE: f64 = 0.02;

/// Returns one table with the histograms of the visible streams that have 16 calls of at least two sizes, and a finding or 2 % of
/// the time. With `all`, neither finding nor time counts. No block if there is no such stream.
pub(super) fn blocks(
    streams: &[TraceStream],
    shown: &[usize],
    findings: &[Finding],
    all: bool,
) -> Vec<Block> {
    let several = |stream: &TraceStream| stream.counts.sizes.0.iter().filter(|count| **count > 0).count() > 1;
    let matters = |stream: &TraceStream| {
        all || stream.share >= MIN_SHARE || ListedStream::from(stream).is_found(findings)
    };
    let mut chosen: Vec<&TraceStream> = shown.iter().map(|&index| &streams[index]).collect();
    chosen.retain(|stream| stream.counts.calls >= MIN_CALLS && several(stream) && matters(stream));
    if !all {
        chosen.sort_by(|a, b| b.cost_s.total_cmp(&a.cost_s));
        chosen.truncate(MAX_HISTOGRAMS);
    }
    if chosen.is_empty() {
        return Vec::new();
    }
    vec![Block::Table(table(&chosen))]
}

fn table(streams: &[&TraceStream]) -> Table {
    let heading = |stream: &&TraceStream| Heading {
        text: format!(
            "{} fd {}{} {} {}",
            process_label(stream.comm, stream.counts.pid),
            stream.counts.fd,
            if stream.counts.exact { "" } else { " (sampled)" },
            direction_sign(stream.counts.direction),
            stream.path
        ),
        series: None,
    };
    Table {
        columns: vec![
            Column::new("bytes a call", "", Align::Left),
            Column::new("calls", "", Align::Right),
            Column::new("%", "", Align::Right),
        ],
        headings: streams.iter().map(heading).collect(),
        rows: streams.iter().enumerate().flat_map(|(number, stream)| rows(number, &stream.counts)).collect(),
        bars: Some(Bars { head: "log scale".into(), rank: 1 }),
    }
}

/// Returns one row for each power of two with calls. For sampled sizes it shows shares only: sampled numbers of calls
/// would look as exact as those in the table of streams.
fn rows(heading: usize, counts: &StreamCounts) -> Vec<TableRow> {
    let total = counts.sizes.total() as f64;
    let used = counts.sizes.0.iter().enumerate().filter(|(_, count)| **count > 0);
    let calls = |count: u64| if counts.exact { thousands(count) } else { ABSENT.into() };
    used.map(|(slot, &count)| TableRow {
        heading: Some(heading),
        cells: vec![range(slot).into(), calls(count).into(), whole_percent(count as f64 / total).into()],
        // Doubled, so that one call has a bar too: the logarithm of 1 is 0.
        bar: Some(count as f64 * 2.0),
        ..TableRow::default()
    })
    .collect()
}

/// Returns the range of a slot: `1 B`, `16 – 31 B`, `4 – <8 KiB`.
pub(super) fn range(slot: usize) -> String {
    let low = Histogram::floor(slot);
    match low {
        0 | 1 => Size(low).to_string(),
        2..1024 => format!("{low} – {}", Size(2 * low - 1)),
        _ if slot + 1 >= Histogram::SLOTS => format!("{} and more", Size(low)),
        _ => {
            let (from, to) = (Size(low).to_string(), Size(2 * low).to_string());
            let [from_unit, to_unit] = [&from, &to].map(|text| text.split(' ').nth(1));
            let short = from.split(' ').next().unwrap_or(&from);
            format!("{} – <{to}", if from_unit == to_unit { short } else { &from })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_slots() {
        let slots = [0, 1, 2, 5, 10, 13, 20, 21, 32];
        let expected = [
            "0 B",
            "1 B",
            "2 – 3 B",
            "16 – 31 B",
            "512 – 1023 B",
            "4 – <8 KiB",
            "512 KiB – <1 MiB",
            "1 – <2 MiB",
            "2 GiB and more",
        ];
        assert_eq!(slots.map(range), expected);
    }
}
