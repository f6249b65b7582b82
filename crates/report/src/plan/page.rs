//! The page of `weir run`.

use weir_model::Size;
use weir_model::number::thousands;
use weir_model::run::{Effect, PlanRow, RescuedBytes, RunDocument, RunOutcome};
use weir_model::trace::Exit;

use super::{answer, title};
use crate::block::Block;
use crate::page::Body;
use crate::rescue::rescue_lines;
use crate::scale::{Axis, Spacing, Unit};
use crate::svg::{BarRow, BarsText, NARROW, Picture, Svg, bars, shortened};
use crate::table::{Align, Column, Table, TableRow};

/// Height of the row of an option.
const PITCH: f64 = 30.0;
/// The effects from none to full, with their words.
const EFFECTS: [(Effect, &str); 5] = [
    (Effect::Not, "cannot"),
    (Effect::Part, "in part"),
    (Effect::StandIn, "substitute"),
    (Effect::Already, "not needed"),
    (Effect::Whole, "done"),
];

/// Returns the title of the page of a run.
pub fn page_title(document: &RunDocument) -> String {
    let command = document.plan.command.join(" ").replace('\n', " ");
    match command.char_indices().nth(90) {
        Some((at, _)) => format!("weir run: {}…", &command[..at]),
        None => format!("weir run: {command}"),
    }
}

/// Adds a run to a page: how it ended, what each option does, which bytes were rescued.
pub fn page(document: &RunDocument, body: &mut Body, prefix: &str) {
    body.blocks(&[Block::Verdict(verdict(document)), Block::Aside(title(&document.plan))]);
    body.heading(&format!("{prefix}plan"), "What weir does for each option");
    match options(&document.plan.rows, prefix) {
        Some(picture) => body.picture(picture, &[]),
        None => body.blocks(&[Block::Text("No option is given: the command runs unchanged.".into())]),
    }
    body.blocks(&document.plan.rows.iter().map(answer).collect::<Vec<_>>());
    if let Some(outcome) = &document.outcome {
        if let Some(picture) = rescued(outcome, prefix) {
            body.heading(&format!("{prefix}rescued"), "Rescued bytes");
            body.picture(picture, &[Block::Table(rescue_table(&outcome.rescued))]);
        }
        body.blocks(&outcome.limitations.iter().cloned().map(Block::Warning).collect::<Vec<_>>());
    }
    body.heading(&format!("{prefix}run"), "The run");
    body.command(&document.plan.command.join(" "));
    body.facts(&[
        ("Program", document.plan.program.path.clone().unwrap_or_default()),
        ("Runtime", document.plan.program.runtime.clone()),
    ]);
    body.environment(&document.environment);
}

/// Returns how the run ended, as sentences.
fn verdict(document: &RunDocument) -> Vec<String> {
    let Some(outcome) = &document.outcome else {
        return vec!["The command did not run: this is the plan only.".into()];
    };
    let ended = match outcome.exit {
        Exit::Code(code) => format!("The command ended with status {code}."),
        Exit::Signal(number) => format!("Signal {number} ended the command."),
    };
    let mut sentences = vec![ended];
    if outcome.emitted_bytes > 0 {
        let bytes = Size(outcome.emitted_bytes);
        sentences.push(format!("weir wrote {bytes} before the program did, so that they were in time."));
    }
    sentences.extend(rescue_lines(outcome).into_iter().map(|line| format!("weir {line}.")));
    sentences
}

/// Returns the degree to which each option takes effect; `None` without options.
fn options(rows: &[PlanRow], prefix: &str) -> Option<Picture> {
    let draw = |width: f64| {
        let narrow = width <= NARROW;
        let (left, top) = (if narrow { 110.0 } else { 230.0 }, if narrow { 66.0 } else { 28.0 });
        let pitch = (width - left - 48.0) / (EFFECTS.len() - 1) as f64;
        let x = |at: usize| left + 12.0 + at as f64 * pitch;
        let mut svg = Svg::new(width, top + rows.len() as f64 * PITCH + 6.0);
        for (at, (_, word)) in EFFECTS.iter().enumerate() {
            // On a phone the words take turns on three lines.
            let y = if narrow { 13.0 + (at % 3) as f64 * 19.0 } else { 15.0 };
            svg.text("tick", [x(at), y], "middle", word);
            svg.line("grid", [x(at), y + 5.0], [x(at), svg.height - 4.0]);
        }
        for (number, row) in rows.iter().enumerate() {
            let y = top + (number as f64 + 0.5) * PITCH;
            svg.text("label", [0.0, y + 4.0], "start", &shortened(&row.option, (left / 7.4) as usize));
            let at = EFFECTS.iter().position(|(effect, _)| *effect == row.effect).unwrap_or(0);
            let class = match row.effect {
                Effect::Not => "s1",
                Effect::Part | Effect::StandIn => "s4",
                Effect::Already | Effect::Whole => "s2",
            };
            svg.begin("g", &[("class", class)]);
            svg.line("whisker", [x(0), y], [x(at), y]);
            svg.mark("mark", at, [x(at), y], &format!("{}: {}", row.option, row.text));
            svg.end("g");
        }
        svg
    };
    let description =
        "Each line is an option; its mark is the degree to which it takes effect for this program.";
    let title = "The effect of the options";
    (!rows.is_empty())
        .then(|| Picture::new(&format!("{prefix}effects"), title, description, Vec::new(), draw))
}

/// Returns the rescued bytes by stream; `None` if there are none.
fn rescued(outcome: &RunOutcome, prefix: &str) -> Option<Picture> {
    let row = |rescued: &RescuedBytes| {
        let label = format!("{} ({}) fd {} {}", rescued.comm, rescued.pid, rescued.fd, rescued.path);
        let class = if rescued.saved.is_some() { "s4" } else { "s2" };
        let shown = Size(rescued.bytes).to_string();
        let tip = format!("{label}: {shown}");
        BarRow { label, parts: vec![(rescued.bytes as f64, class.into(), tip)], figure: shown }
    };
    let text = BarsText {
        id: &format!("{prefix}bytes"),
        title: "Bytes that a dead process had not written",
        description: "weir wrote them after the death of the process; yellow ones are in a file, because weir could \
                      not write them to their target.",
        axis: Axis { spacing: Spacing::Linear, unit: Unit::Bytes },
        axis_name: "bytes",
    };
    bars(&text, &outcome.rescued.iter().take(40).map(row).collect::<Vec<_>>())
}

fn rescue_table(rescued: &[RescuedBytes]) -> Table {
    let columns = vec![
        Column::new("process", "", Align::Left),
        Column::new("fd", "", Align::Right),
        Column::new("stream", "", Align::Path),
        Column::new("bytes", "", Align::Right),
        Column::new("ended by", "", Align::Left),
        Column::new("saved in", "", Align::Path),
    ];
    let row = |one: &RescuedBytes| {
        let ended = match one.exit {
            Exit::Code(code) => format!("status {code}"),
            Exit::Signal(number) => format!("signal {number}"),
        };
        let saved =
            one.saved.as_ref().map_or(String::new(), |saved| format!("{}: {}", saved.path, saved.why));
        let cells = vec![
            format!("{} {}", one.comm, one.pid).into(),
            one.fd.to_string().into(),
            one.path.to_string().into(),
            thousands(one.bytes).into(),
            ended.into(),
            saved.into(),
        ];
        TableRow { cells, ..TableRow::default() }
    };
    Table { columns, rows: rescued.iter().map(row).collect(), ..Table::default() }
}
