//! The page of `weir lab`: whether the experiments agree, then each one: expected, seen, fixed, and its frames.

use weir_model::duration::format_seconds;
use weir_model::lab::{LabDocument, LabRow, PageOutcome, ProgramVersion, PublishedTable, SteppedRun, THEMES};

use super::{agreed, agreement, beside, frames, map, outcomes};
use crate::block::Block;
use crate::page::Body;
use crate::scale::{Axis, Spacing, Unit};
use crate::svg::{NARROW, Picture, RowChart, Svg, series_class};
use crate::table::{Align, Column, Heading, Table, TableCell, TableRow};

/// Returns the title of the page of a run.
pub fn page_title(document: &LabDocument) -> String {
    match document.experiments.as_slice() {
        [one] => format!("weir lab: {}", one.name),
        several => format!("weir lab: {} experiments about buffering", several.len()),
    }
}

/// Adds a run to a page.
pub fn document_page(document: &LabDocument, body: &mut Body, prefix: &str) {
    let alone = document.experiments.len() == 1;
    body.blocks(&[Block::Lead(lead(document))]);
    if document.quick {
        let quick = "This was a quick run: small sizes and few repetitions.";
        body.blocks(&[Block::Aside(quick.into())]);
    }
    if let Some(picture) = map::agreement(document, prefix).filter(|_| !alone) {
        body.picture(picture, &[Block::Table(overview(document))]);
    }
    for row in &document.experiments {
        body.heading(&experiment_id(prefix, &row.name), &row.name);
        experiment(row, body, prefix);
    }
    if !document.environment.is_empty() {
        body.heading(&format!("{prefix}machine"), "The machine");
        body.environment(&document.environment);
    }
}

/// Returns the identifier of an experiment's heading, which the map links to.
pub(super) fn experiment_id(prefix: &str, name: &str) -> String {
    format!("{prefix}lab-{name}")
}

fn lead(document: &LabDocument) -> String {
    if let [one] = document.experiments.as_slice() {
        return match one.agrees {
            Some(true) => "The experiment agrees with what it states.".into(),
            Some(false) => "The experiment does not agree with what it states.".into(),
            None => "The experiment cannot run on this machine.".into(),
        };
    }
    agreement(document.experiments.iter().map(|row| (row.agrees, row.name.as_str())))
}

/// Returns letter and title of a theme.
fn theme(letter: &str) -> String {
    let title = THEMES.iter().find(|theme| theme.0 == letter).map_or("", |theme| theme.1);
    format!("{letter} · {title}")
}

/// Returns what is expected, seen, and seen with the fix, one row for each experiment.
fn overview(document: &LabDocument) -> Table {
    let columns = vec![
        Column::new("experiment", "", Align::Left),
        Column::new("expected", "", Align::Path),
        Column::new("seen", "", Align::Path),
        Column::new("fixed", "", Align::Path),
        Column::new("agrees", "", Align::Left),
    ];
    let mut headings: Vec<Heading> = Vec::new();
    let mut rows = Vec::new();
    for row in &document.experiments {
        let text = theme(&row.theme);
        if headings.last().is_none_or(|last| last.text != text) {
            headings.push(Heading { text, series: None });
        }
        let (word, emphasis) = agreed(row.agrees);
        let seen = if row.agrees == Some(true) { None } else { row.reason.clone() };
        rows.push(TableRow {
            heading: Some(headings.len() - 1),
            cells: vec![
                row.name.clone().into(),
                row.expected.clone().into(),
                seen.unwrap_or_else(|| summary(row, ProgramVersion::Broken)).into(),
                summary(row, ProgramVersion::Fixed).into(),
                TableCell::new(word, emphasis),
            ],
            ..TableRow::default()
        });
    }
    Table { columns, headings, rows, bars: None }
}

/// Returns the outcomes of one program, in one line.
fn summary(row: &LabRow, version: ProgramVersion) -> String {
    let of_version = row.outcomes.iter().filter(|outcome| outcome.version == version);
    of_version.map(|one| format!("{}: {}", one.what, one.seen)).collect::<Vec<_>>().join("; ")
}

/// Adds one experiment: the expectation beside what happens, cause and fix, tables, frames.
fn experiment(row: &LabRow, body: &mut Body, prefix: &str) {
    let answer =
        |question: &str, answer: &str| Block::Answer { question: question.into(), answer: answer.into() };
    let mut blocks = vec![Block::Text(format!("{}.", row.about)), answer("You would expect:", &row.expected)];
    let observed = observed(row);
    if !observed.is_empty() {
        let (table, meaning) = outcomes::table(&observed);
        blocks.push(Block::Table(table));
        blocks.extend(meaning.map(Block::Aside));
    }
    if let Some(reason) = &row.reason {
        let what = if row.agrees.is_none() { "not run" } else { "not as the experiment states" };
        blocks.push(Block::Warning(format!("{what}: {reason}")));
    }
    blocks.extend((!row.why.is_empty()).then(|| answer("Why:", &row.why)));
    blocks.extend((!row.fix.is_empty()).then(|| answer("Fix:", &row.fix)));
    blocks.push(Block::Aside(format!("took {}", format_seconds(row.elapsed_s))));
    body.blocks(&blocks);
    for table in &row.tables {
        let behind = beside::blocks(table, false, None);
        match published(table, &format!("{prefix}{}-{}", row.name, table.id)) {
            Some(picture) => body.picture(picture, &behind),
            None => body.blocks(&behind),
        }
    }
    for run in &row.steps {
        steps(row, run, body, prefix);
    }
}

/// Returns the outcomes of both programs side by side.
fn observed(row: &LabRow) -> Vec<PageOutcome> {
    let mut all: Vec<PageOutcome> = Vec::new();
    for outcome in &row.outcomes {
        let index = all.iter().position(|one| one.what == outcome.what).unwrap_or_else(|| {
            let (what, expect) = (outcome.what.clone(), outcome.expected.clone());
            all.push(PageOutcome { what, expect, ..PageOutcome::default() });
            all.len() - 1
        });
        *all[index].value_mut(outcome.version) = Some(outcome.into());
    }
    all
}

/// Adds the frames of a run, which the page's script shows one at a time.
fn steps(row: &LabRow, run: &SteppedRun, body: &mut Body, prefix: &str) {
    let which = match run.version {
        ProgramVersion::Broken => "The program, call by call",
        ProgramVersion::Fixed => "The fixed program, call by call",
    };
    body.blocks(&[Block::Title(which.into())]);
    let id = format!("{prefix}{}-{}", row.name, run.version.name());
    body.target(&format!("{id}-steps"), "frames", |body| {
        for (at, frame) in run.frames.iter().enumerate() {
            body.picture(frames::picture(frame, at + 1, run.steps, &format!("{id}-{}", at + 1)), &[]);
        }
    });
    if run.frames.len() < run.steps {
        let option = match run.version {
            ProgramVersion::Broken => "",
            ProgramVersion::Fixed => " --fixed",
        };
        body.blocks(&[Block::Aside(format!(
            "These are the first {} of {} steps; weir lab {} --step{option} shows all.",
            run.frames.len(),
            run.steps,
            row.name
        ))]);
    }
}

/// Returns the figures of this machine divided by the published ones; `None` without a pair of figures.
fn published(table: &PublishedTable, id: &str) -> Option<Picture> {
    let pairs: Vec<(String, f64, usize)> = table
        .rows
        .iter()
        .filter_map(|figure| {
            let (theirs, ours) = (figure.published?, figure.ours?);
            let ratio = ours / theirs;
            let series = usize::from(figure.unit == "calls");
            (ratio.is_finite() && ratio > 0.0)
                .then(|| (format!("{} {}", figure.row, figure.figure), ratio, series))
        })
        .collect();
    let labels: Vec<String> = pairs.iter().map(|pair| pair.0.clone()).collect();
    let mut values: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
    values.extend([0.5, 2.0]);
    let axis = Axis { spacing: Spacing::Log, unit: Unit::Number };
    let draw = |width: f64| {
        let mut chart = RowChart::new(width, &labels, (axis, &values), "this machine / published")?;
        chart.shade(0.99, 1.01);
        for (at, (label, ratio, series)) in pairs.iter().enumerate() {
            let (top, height) = chart.band(at);
            chart.svg.begin("g", &[("class", &series_class(*series))]);
            let shown = crate::number::ratio(*ratio);
            let place = [chart.x(*ratio), top + height / 2.0];
            chart.svg.mark("mark", *series, place, &format!("{label}: {shown} the published figure"));
            chart.svg.end("g");
            chart.figure(at, &shown);
        }
        Some(chart.svg)
    };
    if pairs.is_empty() {
        return None;
    }
    draw(NARROW)?;
    let title = format!("Published beside ours: {}", table.id);
    let description = format!(
        "{}. This machine's figures divided by the published ones; the line is 1. Published: {}.",
        table.title, table.source
    );
    Some(Picture::new(id, &title, &description, Vec::new(), |width| {
        draw(width).unwrap_or_else(|| Svg::new(width, 1.0))
    }))
}
