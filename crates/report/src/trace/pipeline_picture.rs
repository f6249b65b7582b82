//! The picture of a pipeline.

use weir_model::number::counted;
use weir_model::trace::{Hop, PipeEnd, Pipeline};

use super::labels::{bytes, mode, process_label};
use crate::svg::{Picture, Svg};

/// Height of a box: two lines of text.
const BOX: f64 = 46.0;
/// Length of an arrow: two lines of text beside it.
const ARROW: f64 = 56.0;
/// Left edge of the boxes.
const LEFT: f64 = 20.0;
/// Largest width of a box: its longest usual text.
const WIDE: f64 = 420.0;

/// Returns a pipeline from its first process at the top to its last one.
pub(super) fn pipeline(pipeline: &Pipeline, number: usize, prefix: &str) -> Option<Picture> {
    let first = &pipeline.hops.first()?.writer;
    let draw = |width: f64| {
        let height = BOX + pipeline.hops.len() as f64 * (BOX + ARROW) + 8.0;
        let mut svg = Svg::new(width, height);
        process(&mut svg, 4.0, first, &format!("writes, {}", buffer(first)));
        for (at, hop) in pipeline.hops.iter().enumerate() {
            let top = 4.0 + BOX + at as f64 * (BOX + ARROW);
            arrow(&mut svg, top, hop, pipeline.waits_at == Some(at));
            let next = pipeline.hops.get(at + 1).map(|next| &next.writer);
            let writes = next.map_or(String::new(), |next| format!("; writes, {}", buffer(next)));
            process(&mut svg, top + ARROW, &hop.reader, &format!("reads, {}{writes}", buffer(&hop.reader)));
        }
        svg
    };
    let readers = pipeline.hops.iter().map(|hop| hop.reader.comm.to_string());
    let names: Vec<String> = std::iter::once(first.comm.to_string()).chain(readers).collect();
    let title = format!("Pipeline: {}", names.join(" | "));
    let description =
        "The writing process, the buffer that holds the bytes, and the reading process of each pipe.";
    Some(Picture::new(&format!("{prefix}pipeline-{number}"), &title, description, Vec::new(), draw))
}

fn buffer(end: &PipeEnd) -> String {
    match end.mode {
        Some(observed) => format!("buffer: {}", mode(observed, end.buffer_bytes)),
        None => "buffer: unknown".into(),
    }
}

/// Draws the box of a process.
fn process(svg: &mut Svg, top: f64, end: &PipeEnd, detail: &str) {
    let wide = (svg.width - 2.0 * LEFT).min(WIDE);
    svg.element(
        "rect",
        "box",
        &[("x", LEFT), ("y", top), ("width", wide), ("height", BOX), ("rx", 6.0)],
        None,
    );
    svg.text("strong", [LEFT + 12.0, top + 19.0], "start", &process_label(&end.comm, end.pid));
    svg.text("note", [LEFT + 12.0, top + 36.0], "start", detail);
}

/// Draws the arrow of a pipe; `held` marks the pipe that delays lines longest.
fn arrow(svg: &mut Svg, top: f64, hop: &Hop, held: bool) {
    let x = LEFT + 26.0;
    let end = top + ARROW;
    svg.line(if held { "arrow held" } else { "arrow" }, [x, top], [x, end - 7.0]);
    svg.polyline("head", &[[x - 5.0, end - 9.0], [x + 5.0, end - 9.0], [x, end]], true);
    let writer = &hop.writer;
    let moved = format!("{} in {}", bytes(writer.bytes), counted(writer.calls, "call"));
    svg.text("label", [x + 16.0, top + 22.0], "start", &moved);
    let (class, text) = match (held, writer.waiting_bytes) {
        (true, 0) => ("alarm", "lines are delayed here".into()),
        (true, pending) => ("alarm", format!("lines are delayed here: {} pending", bytes(pending))),
        (false, 0) => {
            ("note", hop.pipe_bytes.map_or(String::new(), |size| format!("pipe of {}", bytes(size))))
        }
        (false, pending) => ("note", format!("{} pending", bytes(pending))),
    };
    svg.text(class, [x + 16.0, top + 40.0], "start", &text);
}
