//! The pictures of the streams of a trace: over time, their costs, sizes of their calls.

use weir_model::Direction;
use weir_model::duration::format_seconds;
use weir_model::number::counted;
use weir_model::trace::document::StreamRow;
use weir_model::trace::{Histogram, StreamTimeline, TimelineBin, TraceDocument};

use super::labels::{bytes, direction_sign, process_label};
use super::sizes::range;
use crate::number::percent;
use crate::scale::{Axis, Spacing, Unit};
use crate::svg::{BarRow, BarsText, NARROW, Picture, RowChart, Svg, bars, series_class};

/// Lanes of the timeline and rows of the costs. More do not fit on a screen; the table has all streams.
pub(super) const MAX_LANES: usize = 40;
/// Streams with a histogram.
const MAX_HISTOGRAMS: usize = 6;
/// Smallest number of calls for a histogram.
const FEW_CALLS: u64 = 16;

/// Returns the label of a stream: process, descriptor, direction, path.
pub(super) fn label(stream: &StreamRow) -> String {
    let process = process_label(&stream.comm, stream.pid);
    format!("{process} fd {} {} {}", stream.fd, direction_sign(stream.direction), stream.path)
}

/// Returns the identifiers of a stream's lane in the wide and in the narrow drawing, which findings link to.
pub(super) fn lane_ids(prefix: &str, stream: usize) -> [String; 2] {
    ["", "-narrow"].map(|end| format!("{prefix}stream-{stream}{end}"))
}

/// Returns the series of a stream: its direction decides the colour.
fn series(stream: &StreamRow) -> usize {
    if stream.direction == Direction::In { 0 } else { 1 }
}

fn left_out(streams: &[usize]) -> String {
    match streams.len().saturating_sub(MAX_LANES) {
        0 => String::new(),
        more => format!(" {more} more streams are in the table only."),
    }
}

/// Returns some streams over time, in their order. `prefix`: of the identifiers of the page's part, and of this picture.
pub(super) fn timeline(
    document: &TraceDocument,
    streams: &[usize],
    [prefix, name]: [&str; 2],
) -> Option<Picture> {
    let lanes: Vec<(usize, &StreamTimeline)> = streams
        .iter()
        .take(MAX_LANES)
        .filter_map(|&at| Some((at, document.timeline.iter().find(|timeline| timeline.stream == at)?)))
        .collect();
    let draw = |width: f64| {
        let labels: Vec<String> =
            lanes.iter().map(|(at, _)| label(document.streams.get(*at)?).into()).collect::<Option<_>>()?;
        let axis = Axis { spacing: Spacing::Linear, unit: Unit::Seconds };
        let ends = [0.0, document.elapsed_s.max(1e-6)];
        let mut chart = RowChart::new(width, &labels, (axis, &ends), "time since the start")?;
        for (row, (at, timeline)) in lanes.iter().enumerate() {
            let [wide, narrow] = lane_ids(prefix, *at);
            let id = if width > NARROW { wide } else { narrow };
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
         program when weir read its buffers (between these moments there may have been more), the grey parts are gaps.{}",
        left_out(streams)
    );
    Some(Picture::new(
        &format!("{prefix}{name}timeline"),
        "Streams over time",
        &description,
        Vec::new(),
        |width| draw(width).unwrap_or_else(|| Svg::new(width, 1.0)),
    ))
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
        "{}: {}, {}, from {} to {}",
        label(stream),
        counted(stream.calls, "call"),
        bytes(stream.bytes),
        format_seconds(timeline.first_s),
        format_seconds(timeline.last_s)
    );
    chart.svg.rect("span", [from, top], [(to - from).max(2.0), height], Some(&tip));
    strokes(chart, timeline, [top, bottom]);
    let pending = pending(chart, timeline, [top, bottom]);
    if pending.len() > 1 {
        chart.svg.polyline("pending", &pending, false);
    }
    chart.svg.end("g");
    chart.figure(row, &format!("{} %", percent(stream.share)));
}

/// Returns the horizontal position of a bin.
fn place(chart: &RowChart, timeline: &StreamTimeline, bin: &TimelineBin) -> f64 {
    chart.x((bin.bin as f64 + 0.5) * timeline.bin_s)
}

/// Draws the gaps and a stroke for each bin with calls. Strokes closer than a pixel cover each other.
fn strokes(chart: &mut RowChart, timeline: &StreamTimeline, [top, bottom]: [f64; 2]) {
    let (mut gaps, mut calls): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    for bin in &timeline.bins {
        let x = place(chart, timeline, bin);
        for (is, all) in [(bin.gap, &mut gaps), (bin.calls > 0, &mut calls)] {
            if is && all.last().is_none_or(|last| x - last >= 1.0) {
                all.push(x);
            }
        }
    }
    chart.svg.strokes("gap", &gaps, [top, bottom]);
    chart.svg.strokes("call", &calls, [top + 2.0, bottom - 2.0]);
}

/// Returns the line of the pending bytes: of each pixel the largest number.
fn pending(chart: &RowChart, timeline: &StreamTimeline, [top, bottom]: [f64; 2]) -> Vec<[f64; 2]> {
    let most = timeline.bins.iter().filter_map(|bin| bin.pending).max().unwrap_or(0).max(1) as f64;
    let mut line: Vec<[f64; 2]> = Vec::new();
    for bin in &timeline.bins {
        let Some(pending) = bin.pending else { continue };
        let x = place(chart, timeline, bin);
        let y = bottom - 1.0 - pending as f64 / most * (bottom - top - 2.0);
        match line.last_mut().filter(|last| x - last[0] < 1.0) {
            Some(last) => last[1] = last[1].min(y),
            None => line.push([x, y]),
        }
    }
    line
}

/// Returns the cost of each of some streams as a share of the run; the arguments are those of [`timeline`].
pub(super) fn costs(
    document: &TraceDocument,
    streams: &[usize],
    [prefix, name]: [&str; 2],
) -> Option<Picture> {
    let bar = |at: usize| {
        let stream = &document.streams[at];
        let tip = format!("{}: {} of the run", label(stream), format_seconds(stream.cost_s));
        BarRow {
            label: label(stream),
            parts: vec![(stream.share * 100.0, series_class(series(stream)), tip)],
            figure: format_seconds(stream.cost_s),
        }
    };
    let description = format!(
        "Time of the calls of each stream by this machine's prices, as a share of the run; blue is read, orange is \
         written.{}",
        left_out(streams)
    );
    let text = BarsText {
        id: &format!("{prefix}{name}costs"),
        title: "What each stream costs",
        description: &description,
        axis: Axis { spacing: Spacing::Linear, unit: Unit::Number },
        axis_name: "% of the run",
    };
    bars(&text, &streams.iter().take(MAX_LANES).map(|&at| bar(at)).collect::<Vec<_>>())
}

/// Returns the histograms of call sizes of the most expensive of some streams that have calls of several sizes.
pub(super) fn sizes(document: &TraceDocument, streams: &[usize], prefix: &str) -> Vec<Picture> {
    let mut order: Vec<usize> = streams.to_vec();
    order.sort_by(|&a, &b| document.streams[b].cost_s.total_cmp(&document.streams[a].cost_s));
    let shown = order.into_iter().filter(|&at| {
        let stream = &document.streams[at];
        stream.calls >= FEW_CALLS && stream.sizes.len() > 1
    });
    shown.take(MAX_HISTOGRAMS).filter_map(|at| histogram(&document.streams[at], at, prefix)).collect()
}

fn histogram(stream: &StreamRow, at: usize, prefix: &str) -> Option<Picture> {
    let total = stream.sizes.values().sum::<u64>().max(1) as f64;
    let about = if stream.exact { "" } else { " (sampled)" };
    let bar = |(size, calls): (&u64, &u64)| {
        let range = range(Histogram::slot(*size));
        let share = percent(*calls as f64 / total);
        let tip = format!("{range}: {}, {share} %{about}", counted(*calls, "call"));
        BarRow {
            label: range,
            parts: vec![(*calls as f64, series_class(series(stream)), tip)],
            figure: format!("{share} %"),
        }
    };
    let text = BarsText {
        id: &format!("{prefix}sizes-{at}"),
        title: &format!("Bytes a call: {}", label(stream)),
        description: "Number of calls by the bytes that they moved; the axis is logarithmic.",
        axis: Axis { spacing: Spacing::Log, unit: Unit::Count },
        axis_name: "calls",
    };
    bars(&text, &stream.sizes.iter().map(bar).collect::<Vec<_>>())
}
