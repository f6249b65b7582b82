//! The page of `weir log check`.

use weir_model::log::{LogCheckDocument, LogWriter};
use weir_model::number::{counted, thousands};

use super::{bad_table, verdict, writers_table};
use crate::block::Block;
use crate::number::in_binary;
use crate::page::Body;
use crate::scale::{Axis, Spacing, Unit};
use crate::style::Emphasis;
use crate::svg::{BarRow, BarsText, NARROW, Picture, RowChart, Svg, bars};

/// Rows of a picture. More do not fit on a screen; the table has all.
const MAX_ROWS: usize = 40;

/// Returns the title of the page of a check.
pub fn page_title(document: &LogCheckDocument) -> String {
    format!("weir log check: {}", weir_model::Untrusted::from(document.log.as_str()))
}

/// Adds a check to a page: the verdict, where the log is damaged, and the records of each writer.
pub fn page(document: &LogCheckDocument, body: &mut Body, prefix: &str) {
    let (emphasis, text) = verdict(document);
    body.blocks(&[match emphasis {
        Emphasis::Bad => Block::Verdict(vec![text]),
        _ => Block::Lead(text),
    }]);
    let facts = vec![in_binary(document.bytes), counted(document.records, "record")];
    body.blocks(&[Block::Facts(facts)]);
    body.heading(&format!("{prefix}records"), "Records");
    for picture in [kinds(document, prefix), damage(document, prefix)].into_iter().flatten() {
        let is_damage = picture.id.ends_with("damage");
        body.picture(
            picture,
            &if is_damage { vec![Block::Table(bad_table(&document.bad))] } else { Vec::new() },
        );
    }
    if let Some(picture) = writers(document, prefix) {
        body.heading(&format!("{prefix}writers"), &format!("Writers: {}", document.writers.len()));
        body.picture(picture, &[Block::Table(writers_table(&document.writers))]);
    }
    if !document.command.is_empty() {
        body.heading(&format!("{prefix}run"), "The run");
        body.command(&document.command.join(" "));
    }
    body.environment(&document.environment);
}

/// Returns how many records are whole, torn and interleaved.
fn kinds(document: &LogCheckDocument, prefix: &str) -> Option<Picture> {
    let missing: u64 = document.writers.iter().map(|writer| writer.missing).sum();
    let kinds = [
        ("whole", document.whole, "s2"),
        ("torn", document.torn, "s1"),
        ("interleaved", document.interleaved, "s3"),
        ("missing", missing, "s6"),
    ];
    let row = |(name, count, class): (&str, u64, &str)| BarRow {
        label: name.into(),
        parts: vec![(count as f64, class.into(), format!("{name}: {}", counted(count, "record")))],
        figure: thousands(count),
    };
    let text = BarsText {
        id: &format!("{prefix}kinds"),
        title: "Whole and damaged records",
        description: "The axis is logarithmic, so that a few damaged records among many whole ones are visible.",
        axis: Axis { spacing: Spacing::Log, unit: Unit::Count },
        axis_name: "records",
    };
    bars(&text, &kinds.map(row))
}

/// Returns where in the file the first damaged records are; `None` if there are none.
fn damage(document: &LogCheckDocument, prefix: &str) -> Option<Picture> {
    let mut faults: Vec<String> = Vec::new();
    for bad in &document.bad {
        if !faults.contains(&bad.kind) {
            faults.push(bad.kind.clone());
        }
    }
    let axis = Axis { spacing: Spacing::Linear, unit: Unit::Bytes };
    let ends = [0.0, document.bytes.max(1) as f64];
    let draw = |width: f64| {
        let mut chart = RowChart::new(width, &faults, (axis, &ends), "byte of the file")?;
        for bad in &document.bad {
            let row = faults.iter().position(|kind| *kind == bad.kind)?;
            let (top, height) = chart.band(row);
            let [from, to] = [bad.offset, bad.offset + bad.bytes].map(|at| chart.x(at as f64));
            let tip =
                format!("record {}, {} at byte {}", bad.record, in_binary(bad.bytes), thousands(bad.offset));
            let class = if bad.kind == "torn" { "bar s1" } else { "bar s3" };
            chart.svg.rect(class, [from, top], [(to - from).max(1.5), height], Some(&tip));
        }
        for (row, kind) in faults.iter().enumerate() {
            let count = document.bad.iter().filter(|bad| bad.kind == *kind).count();
            chart.figure(row, &count.to_string());
        }
        Some(chart.svg)
    };
    if faults.is_empty() {
        return None;
    }
    draw(NARROW)?;
    let shown = document.bad.len() as u64;
    let more = (document.torn + document.interleaved).saturating_sub(shown);
    let more =
        if more > 0 { format!(" {} more are not in the result.", thousands(more)) } else { String::new() };
    let description =
        format!("The file from its first byte to its last, with the first damaged records.{more}");
    Some(Picture::new(
        &format!("{prefix}damage"),
        "Where the log is damaged",
        &description,
        Vec::new(),
        |width| draw(width).unwrap_or_else(|| Svg::new(width, 1.0)),
    ))
}

/// Returns the records of each writer; `None` if the records name no writer.
fn writers(document: &LogCheckDocument, prefix: &str) -> Option<Picture> {
    let named: Vec<&LogWriter> = document.writers.iter().filter(|writer| !writer.name.is_empty()).collect();
    let row = |writer: &&LogWriter| {
        let part = |count: u64, kind: &str, class: &str| {
            (count as f64, class.to_string(), format!("{}: {} {kind}", writer.name, thousands(count)))
        };
        BarRow {
            label: writer.name.to_string(),
            parts: vec![
                part(writer.records, "whole", "s2"),
                part(writer.missing, "missing", "s6"),
                part(writer.repeated, "repeated or late", "s3"),
            ],
            figure: thousands(writer.records),
        }
    };
    let more = match named.len().saturating_sub(MAX_ROWS) {
        0 => String::new(),
        more => format!(" {more} more writers are in the table only."),
    };
    let description =
        format!("Records of each writer: green is whole, grey is missing, purple is repeated or late.{more}");
    let text = BarsText {
        id: &format!("{prefix}by-writer"),
        title: "Records by writer",
        description: &description,
        axis: Axis { spacing: Spacing::Linear, unit: Unit::Count },
        axis_name: "records",
    };
    bars(&text, &named.iter().take(MAX_ROWS).map(row).collect::<Vec<_>>())
}
