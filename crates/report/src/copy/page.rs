//! The page of `weir copy`.

use weir_model::Size;
use weir_model::copy::CopyDocument;
use weir_model::duration::format_seconds;
use weir_model::number::{counted, thousands};

use super::amounts;
use crate::block::Block;
use crate::number::{TICK_S, UNDIVIDED};
use crate::page::Body;
use crate::scale::{Axis, Spacing, Unit};
use crate::svg::{BarRow, BarsText, Picture, bars};

/// Returns the title of the page of a copy.
pub fn page_title(document: &CopyDocument) -> String {
    let bytes = document.copied_bytes + document.shared_bytes;
    format!("weir copy: {}, {}", counted(document.files, "file"), Size(bytes))
}

/// Adds a copy to a page: what was copied and what a power cut costs, then bytes, methods, calls and time.
pub fn page(document: &CopyDocument, body: &mut Body, prefix: &str) {
    let power_cut = sentence(&document.power_cut);
    body.blocks(&[Block::Verdict(vec![sentence(&amounts(document)), power_cut])]);
    if document.errors > 0 {
        let errors = counted(document.errors, "error");
        body.blocks(&[Block::Warning(format!(
            "{errors}: not everything was copied; standard error named them"
        ))]);
    }
    body.heading(&format!("{prefix}bytes"), "The bytes");
    let pictures = [
        contents(document, prefix),
        methods(document, prefix),
        calls(document, prefix),
        time(document, prefix),
    ];
    pictures.into_iter().flatten().for_each(|picture| body.picture(picture, &[]));
    body.heading(&format!("{prefix}run"), "The run");
    if !document.command.is_empty() {
        body.command(&document.command.join(" "));
    }
    body.facts(&facts(document));
    body.environment(&document.environment);
}

/// Returns a text with a capital and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map_or(String::new(), |letter| letter.to_uppercase().to_string());
    format!("{first}{}.", letters.as_str())
}

fn bar(label: &str, value: f64, class: &str, shown: String) -> BarRow {
    let tip = format!("{label}: {shown}");
    BarRow { label: label.into(), parts: vec![(value, class.into(), tip)], figure: shown }
}

/// Returns how the content of the files got there.
fn contents(document: &CopyDocument, prefix: &str) -> Option<Picture> {
    let rows = [
        ("copied", document.copied_bytes, "s0"),
        ("shared with the source", document.shared_bytes, "s2"),
        ("holes", document.hole_bytes, "s6"),
        ("reread and equal", document.verified_bytes, "s3"),
    ];
    let rows: Vec<BarRow> = rows
        .into_iter()
        .filter(|row| row.1 > 0)
        .map(|(label, bytes, class)| bar(label, bytes as f64, class, Size(bytes).to_string()))
        .collect();
    let text = BarsText {
        id: &format!("{prefix}contents"),
        title: "How the bytes got there",
        description: "Copied bytes were written; shared ones have one place on the disk for source and target; holes \
                      take none.",
        axis: Axis { spacing: Spacing::Linear, unit: Unit::Bytes },
        axis_name: "bytes",
    };
    bars(&text, &rows)
}

/// Returns the bytes of each method.
fn methods(document: &CopyDocument, prefix: &str) -> Option<Picture> {
    let row = |(name, count): (&String, &weir_model::copy::MethodCount)| {
        let tip = format!("{name}: {} in {}", Size(count.bytes), counted(count.files, "file"));
        BarRow {
            label: name.clone(),
            parts: vec![(count.bytes as f64, "s0".into(), tip)],
            figure: counted(count.files, "file"),
        }
    };
    let text = BarsText {
        id: &format!("{prefix}methods"),
        title: "Methods",
        description: "Bytes of data, without holes, by the method that moved the last of a file; at the right is the number of files.",
        axis: Axis { spacing: Spacing::Linear, unit: Unit::Bytes },
        axis_name: "bytes",
    };
    bars(&text, &document.methods.iter().map(row).collect::<Vec<_>>())
}

/// Returns the number of calls by name.
fn calls(document: &CopyDocument, prefix: &str) -> Option<Picture> {
    let text = BarsText {
        id: &format!("{prefix}calls"),
        title: "System calls",
        description: "Calls that move data, find holes or make files durable; the axis is logarithmic.",
        axis: Axis { spacing: Spacing::Log, unit: Unit::Count },
        axis_name: "calls",
    };
    let row = |(name, count): (&String, &u64)| bar(name, *count as f64, "s0", thousands(*count));
    bars(&text, &document.calls.iter().map(row).collect::<Vec<_>>())
}

/// Returns CPU time, sync time and the whole time.
fn time(document: &CopyDocument, prefix: &str) -> Option<Picture> {
    let cpu_s = document.user_s + document.system_s;
    let mut rows = vec![("elapsed", document.elapsed_s, "s6")];
    match cpu_s < TICK_S {
        true => rows.push(("CPU time", cpu_s, "s4")),
        false => rows.extend([("user", document.user_s, "s0"), ("system", document.system_s, "s1")]),
    }
    rows.push(("in syncs", document.sync_s, "s3"));
    let row = |(label, seconds, class)| bar(label, seconds, class, format_seconds(seconds));
    let rows: Vec<BarRow> = rows.into_iter().map(row).collect();
    let undivided = format!("The CPU time of all threads {UNDIVIDED}.");
    let text = BarsText {
        id: &format!("{prefix}time"),
        title: "Time",
        description: match cpu_s < TICK_S {
            true => &undivided,
            false => {
                "CPU time and time in syncs are those of all threads, and may add up to more than the elapsed time."
            }
        },
        axis: Axis { spacing: Spacing::Linear, unit: Unit::Seconds },
        axis_name: "time",
    };
    bars(&text, &rows)
}

fn facts(document: &CopyDocument) -> Vec<(&'static str, String)> {
    vec![
        ("Sync policy", document.sync.clone()),
        ("Durable files", format!("{} of {}", thousands(document.synced_files), thousands(document.files))),
        ("Directories", thousands(document.directories)),
        ("Symbolic links, hard links", format!("{}, {}", document.symbolic_links, document.hard_links)),
        ("Special files", thousands(document.special_files)),
        ("Existing files kept", thousands(document.skipped)),
        ("Attributes that the target cannot keep", thousands(document.dropped_attributes)),
        (
            "Left in the page cache",
            document.cached_bytes.map_or(String::new(), |bytes| Size(bytes).to_string()),
        ),
        ("Errors", thousands(document.errors)),
    ]
}
