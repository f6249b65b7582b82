//! How large the calls were: a histogram for each stream that matters and has calls of several sizes.

use weir_model::trace::{Histogram, StreamCounts};
use weir_model::{Finding, Size};

use super::table::is_found;
use super::words::{sign, thousands, who};
use crate::block::Block;
use crate::number::{ABSENT, whole_percent};
use crate::table::{Align, Bars, Column, Heading, Table, TableRow};
use weir_model::trace::TraceStream;

/// Histograms that are shown where not all are asked for.
const MOST: usize = 3;
/// With fewer calls the table of streams says it all.
const FEW_CALLS: u64 = 16;
/// A part of the run's time that makes a stream matter.
const MATTERS: f64 = 0.02;

/// The histograms of the streams among `shown` that matter.
pub(super) fn blocks(
    streams: &[TraceStream],
    shown: &[usize],
    findings: &[Finding],
    all: bool,
) -> Vec<Block> {
    let several = |stream: &TraceStream| stream.counts.sizes.0.iter().filter(|count| **count > 0).count() > 1;
    let matters = |stream: &TraceStream| all || stream.share >= MATTERS || is_found(stream, findings);
    let mut chosen: Vec<&TraceStream> = shown.iter().map(|&index| &streams[index]).collect();
    chosen.retain(|stream| stream.counts.calls >= FEW_CALLS && several(stream) && matters(stream));
    if !all {
        chosen.sort_by(|a, b| b.cost_s.total_cmp(&a.cost_s));
        chosen.truncate(MOST);
    }
    if chosen.is_empty() {
        return Vec::new();
    }
    vec![Block::Table(table(&chosen))]
}

fn table(streams: &[&TraceStream]) -> Table {
    let heading = |stream: &&TraceStream| Heading {
        text: format!(
            "{} fd {} {}{} {}",
            who(stream.comm, stream.counts.pid),
            stream.counts.fd,
            if stream.counts.exact { "" } else { "by samples " },
            sign(stream.counts.direction),
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

/// One row for each power of two that has calls. Of samples only the shares are known: a number of calls beside the one in
/// the table of streams would look as exact as that.
fn rows(heading: usize, counts: &StreamCounts) -> Vec<TableRow> {
    let total = counts.sizes.total() as f64;
    let used = counts.sizes.0.iter().enumerate().filter(|(_, count)| **count > 0);
    let calls = |count: u64| if counts.exact { thousands(count) } else { ABSENT.into() };
    used.map(|(slot, &count)| TableRow {
        heading: Some(heading),
        cells: vec![range(slot).into(), calls(count).into(), whole_percent(count as f64 / total).into()],
        // One call has a bar too: the logarithm of 1 is 0.
        bar: Some(count as f64 * 2.0),
        ..TableRow::default()
    })
    .collect()
}

/// `1 B`, `16 – 31 B`, `4 – 8 KiB`.
fn range(slot: usize) -> String {
    let low = Histogram::floor(slot);
    match low {
        0 | 1 => Size(low).to_string(),
        2..1024 => format!("{low} – {}", Size(2 * low - 1)),
        _ if slot + 1 >= Histogram::SLOTS => format!("{} and more", Size(low)),
        _ => {
            let (from, to) = (Size(low).to_string(), Size(2 * low).to_string());
            let [from_unit, to_unit] = [&from, &to].map(|text| text.split(' ').nth(1));
            let short = from.split(' ').next().unwrap_or(&from);
            format!("{} – {to}", if from_unit == to_unit { short } else { &from })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_read_as_people_count() {
        let slots = [0, 1, 2, 5, 10, 13, 20, 21, 32];
        let expected = [
            "0 B",
            "1 B",
            "2 – 3 B",
            "16 – 31 B",
            "512 – 1023 B",
            "4 – 8 KiB",
            "512 KiB – 1 MiB",
            "1 – 2 MiB",
            "2 GiB and more",
        ];
        assert_eq!(slots.map(range), expected);
    }
}
