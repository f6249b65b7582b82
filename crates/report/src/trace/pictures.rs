//! The pictures of the streams of a trace: over time, their costs, sizes of their calls.

use weir_model::Direction;
use weir_model::duration::format_seconds;
use weir_model::number::thousands;
use weir_model::trace::document::StreamRow;
use weir_model::trace::{Histogram, StreamTimeline, TraceDocument};

use super::labels::{bytes, direction_sign, process_label};
use super::sizes::range;
use crate::number::percent;
use crate::scale::{Axis, Spacing, Unit};
use crate::svg::{NARROW, Picture, RowChart, Svg, series_class};

/// Lanes of the timeline and rows of the costs. More do not fit on a screen; the table has all streams.
const LANES_MOST: usize = 40;
/// Streams with a histogram.
const HISTOGRAMS_MOST: usize = 6;
/// Smallest number of calls for a histogram.
const FEW_CALLS: u64 = 16;

/// Returns the label of a stream: process, descriptor, direction, path.
pub(super) fn label(stream: &StreamRow) -> String {
    let process = process_label(&stream.comm, stream.pid);
    format!("{process} fd {} {} {}", stream.fd, direction_sign(stream.direction), stream.path)
}

/// Returns the identifier of a stream's lane, which findings link to.
pub(super) fn lane_id(prefix: &str, stream: usize) -> String {
    format!("{prefix}stream-{stream}")
}

/// Returns the series of a stream: its direction decides the colour.
fn series(stream: &StreamRow) -> usize {
    if stream.direction == Direction::In { 0 } else { 1 }
}

/// Returns the indexes of the streams to draw: those of findings first, then by cost; in the order of the document.
pub(super) fn drawn(document: &TraceDocument) -> Vec<usize> {
    let found = |at: usize| {
        let stream = &document.streams[at];
        document.findings.iter().any(|finding| finding.pid == stream.pid && finding.fd == stream.fd)
    };
    let mut order: Vec<usize> = (0..document.streams.len()).collect();
    order.sort_by(|&a, &b| {
        let cost = |at: usize| document.streams[at].cost_s;
        found(b).cmp(&found(a)).then(cost(b).total_cmp(&cost(a)))
    });
    order.truncate(LANES_MOST);
    order.sort_unstable();
    order
}

fn left_out(document: &TraceDocument) -> String {
    match document.streams.len().saturating_sub(LANES_MOST) {
        0 => String::new(),
        more => format!(" {more} more streams are in the table only."),
    }
}

/// Returns the streams over time.
pub(super) fn timeline(document: &TraceDocument, prefix: &str) -> Option<Picture> {
    let drawn = drawn(document);
    let lanes: Vec<(usize, &StreamTimeline)> = drawn
        .iter()
        .filter_map(|&at| Some((at, document.timeline.iter().find(|timeline| timeline.stream == at)?)))
        .collect();
    let draw = |width: f64| {
        let labels: Vec<String> =
            lanes.iter().map(|(at, _)| label(document.streams.get(*at)?).into()).collect::<Option<_>>()?;
        let axis = Axis { spacing: Spacing::Linear, unit: Unit::Seconds };
        let ends = [0.0, document.elapsed_s.max(1e-6)];
        let mut chart = RowChart::new(width, &labels, (axis, &ends), "time since the start")?;
        for (row, (at, timeline)) in lanes.iter().enumerate() {
            let id = if width > NARROW { lane_id(prefix, *at) } else { lane_id(prefix, *at) + "-narrow" };
            lane(&mut chart, row, &document.streams[*at], timeline, &id);
        }
        Some(chart.svg)
    };
    if lanes.is_empty() {
        return None;
    }
    draw(NARROW)?;
    let description = format!(
        "Each lane is a stream from its first call to its last; blue is read, orange is written. Strokes are calls with a \
         recorded time (of a busy stream the first and the last ones), the red line is the number of bytes pending in the \
         program, the grey parts are gaps.{}",
        left_out(document)
    );
    Some(Picture::new(&format!("{prefix}timeline"), "Streams over time", &description, Vec::new(), |width| {
        draw(width).unwrap_or_else(|| Svg::new(width, 1.0))
    }))
}

/// Draws the lane of one stream.
fn lane(chart: &mut RowChart, row: usize, stream: &StreamRow, timeline: &StreamTimeline, id: &str) {
    let (top, height) = chart.band(row);
    let bottom = top + height;
    let whole = [chart.x(0.0), chart.x(f64::MAX)];
    chart.svg.begin("g", &[("id", id), ("class", &series_class(series(stream)))]);
    chart.svg.rect("lane", [whole[0], top], [whole[1] - whole[0], height], None);
    let (from, to) = (chart.x(timeline.first_s), chart.x(timeline.last_s));
    let tip = format!(
        "{}: {} calls, {}, from {} to {}",
        label(stream),
        thousands(stream.calls),
        bytes(stream.bytes),
        format_seconds(timeline.first_s),
        format_seconds(timeline.last_s)
    );
    chart.svg.rect("span", [from, top], [(to - from).max(2.0), height], Some(&tip));
    let middle = |bin: usize| (bin as f64 + 0.5) * timeline.bin_s;
    let mut last = f64::NEG_INFINITY;
    for bin in &timeline.bins {
        let x = chart.x(middle(bin.bin));
        if bin.gap {
            chart.svg.rect("gap", [x - 1.0, top], [2.0, height], None);
        }
        // Strokes closer than a pixel cover each other.
        if bin.calls > 0 && x - last >= 1.0 {
            chart.svg.line("call", [x, top + 2.0], [x, bottom - 2.0]);
            last = x;
        }
    }
    let most = timeline.bins.iter().filter_map(|bin| bin.pending).max().unwrap_or(0).max(1) as f64;
    let pending = timeline.bins.iter().filter_map(|bin| {
        let pending = bin.pending? as f64;
        Some([chart.x(middle(bin.bin)), bottom - 1.0 - pending / most * (height - 2.0)])
    });
    let pending: Vec<[f64; 2]> = pending.collect();
    if pending.len() > 1 {
        chart.svg.polyline("pending", &pending, false);
    }
    chart.svg.end("g");
    chart.figure(row, &format!("{} %", percent(stream.share)));
}

/// Returns the cost of each stream as a share of the run.
pub(super) fn costs(document: &TraceDocument, prefix: &str) -> Option<Picture> {
    let drawn = drawn(document);
    let draw = |width: f64| {
        let labels: Vec<String> = drawn.iter().map(|&at| label(&document.streams[at])).collect();
        let axis = Axis { spacing: Spacing::Linear, unit: Unit::Number };
        let most = drawn.iter().map(|&at| document.streams[at].share * 100.0).fold(1.0, f64::max);
        let mut chart = RowChart::new(width, &labels, (axis, &[0.0, most]), "% of the run")?;
        for (row, &at) in drawn.iter().enumerate() {
            let stream = &document.streams[at];
            let (top, height) = chart.band(row);
            let (x1, x2) = (chart.x(0.0), chart.x(stream.share * 100.0));
            let tip = format!("{}: {} of the run", label(stream), format_seconds(stream.cost_s));
            chart.svg.begin("g", &[("class", &series_class(series(stream)))]);
            chart.svg.rect("bar", [x1, top], [(x2 - x1).max(1.0), height], Some(&tip));
            chart.svg.end("g");
            chart.figure(row, &format_seconds(stream.cost_s));
        }
        Some(chart.svg)
    };
    if drawn.is_empty() {
        return None;
    }
    draw(NARROW)?;
    let description = format!(
        "Time of the calls of each stream by this machine's prices, as a share of the run; blue is read, orange is \
         written.{}",
        left_out(document)
    );
    Some(Picture::new(
        &format!("{prefix}costs"),
        "What each stream costs",
        &description,
        Vec::new(),
        |width| draw(width).unwrap_or_else(|| Svg::new(width, 1.0)),
    ))
}

/// Returns the histograms of call sizes of the most expensive streams that have calls of several sizes.
pub(super) fn sizes(document: &TraceDocument, prefix: &str) -> Vec<Picture> {
    let mut order: Vec<usize> = (0..document.streams.len()).collect();
    order.sort_by(|&a, &b| document.streams[b].cost_s.total_cmp(&document.streams[a].cost_s));
    let shown = order.into_iter().filter(|&at| {
        let stream = &document.streams[at];
        stream.calls >= FEW_CALLS && stream.sizes.len() > 1
    });
    shown.take(HISTOGRAMS_MOST).filter_map(|at| histogram(&document.streams[at], at, prefix)).collect()
}

fn histogram(stream: &StreamRow, at: usize, prefix: &str) -> Option<Picture> {
    let total = stream.sizes.values().sum::<u64>().max(1) as f64;
    let draw = |width: f64| {
        let labels: Vec<String> = stream.sizes.keys().map(|size| range(Histogram::slot(*size))).collect();
        let axis = Axis { spacing: Spacing::Log, unit: Unit::Number };
        let mut ends: Vec<f64> = stream.sizes.values().map(|calls| *calls as f64).collect();
        ends.push(0.5);
        let mut chart = RowChart::new(width, &labels, (axis, &ends), "calls")?;
        chart.svg.begin("g", &[("class", &series_class(series(stream)))]);
        for (row, (size, calls)) in stream.sizes.iter().enumerate() {
            let (top, height) = chart.band(row);
            let (x1, x2) = (chart.x(0.5), chart.x(*calls as f64));
            let share = percent(*calls as f64 / total);
            let about = if stream.exact { "" } else { " (sampled)" };
            let tip =
                format!("{}: {} calls, {share} %{about}", range(Histogram::slot(*size)), thousands(*calls));
            chart.svg.rect("bar", [x1, top], [x2 - x1, height], Some(&tip));
        }
        chart.svg.end("g");
        for (row, calls) in stream.sizes.values().enumerate() {
            chart.figure(row, &format!("{} %", percent(*calls as f64 / total)));
        }
        Some(chart.svg)
    };
    draw(NARROW)?;
    let title = format!("Bytes a call: {}", label(stream));
    let description = "Number of calls by the bytes that they moved; the axis is logarithmic.";
    Some(Picture::new(&format!("{prefix}sizes-{at}"), &title, description, Vec::new(), |width| {
        draw(width).unwrap_or_else(|| Svg::new(width, 1.0))
    }))
}
