//! Draws one step of a recorded run: processes with their buffers above, files and pipes below.

use weir_model::lab::LabFrame;
use weir_model::lab::step::{KnownBytes, LabStep, StepFile, StepProcess, StepStream};
use weir_model::{Mode, StreamKind};

use super::boxes::{StepBox, boxes};
use crate::style::{Emphasis, Style};
use crate::text::{clean, shorten, wrap};

/// Largest number of boxes side by side; more would be too narrow to read on 80 columns.
const MAX_COLUMNS: usize = 3;
/// Lines outside of the boxes' content: title, expectation, arrow, keys, four of text, three empty ones, and eight of
/// the frames and headers of both rows of boxes.
const FIXED: usize = 19;

/// State of the step screen.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct StepView<'a> {
    /// Experiment and version of the program.
    pub name: &'a str,
    /// The result that most people expect.
    pub expect: &'a str,
    pub step: &'a LabStep,
    /// Number of the step, from 1.
    pub number: usize,
    /// Number of steps in the recording.
    pub of: usize,
    /// Text to show instead of the boxes.
    pub help: Option<&'a str>,
    pub style: Style,
}

/// Returns the lines of the screen for a terminal of `rows` lines; `None` for any number of lines and no key help.
pub fn frame(view: &StepView, rows: Option<usize>) -> Vec<String> {
    let style = &view.style;
    let title = format!("{} · step {} of {}", view.name, view.number, view.of);
    let expected = format!("you would expect: {}", view.expect);
    let mut lines = vec![
        style.paint(Emphasis::Strong, &fit(&title, view)),
        style.paint(Emphasis::Faint, &fit(&expected, view)),
        String::new(),
    ];
    paragraph(&mut lines, &view.step.text, Emphasis::Strong, view, rows);
    paragraph(&mut lines, &view.step.note, Emphasis::Plain, view, rows);
    lines.push(String::new());
    match view.help {
        Some(help) => {
            lines.extend(help.lines().flat_map(|line| wrap(&clean(line, style), style.width, "", "")))
        }
        None => picture(&mut lines, view, rows),
    }
    if let Some(rows) = rows {
        lines.truncate(rows.saturating_sub(1));
        lines.resize(rows.saturating_sub(1), String::new());
        let keys = match view.number == view.of {
            true => "the end   ← back   Home first   ? why   q quit",
            false => "→ next   ← back   Home first   End last   ? why   q quit",
        };
        lines.push(style.paint(Emphasis::Faint, &fit(keys, view)));
    }
    lines
}

/// Returns a step as a frame of a page.
pub fn page_frame(step: &LabStep) -> LabFrame {
    let (processes, _) = chosen(processes(step));
    let (files, _) = chosen(files(step));
    let of = |boxes: Vec<StepBox>| boxes.into_iter().map(StepBox::into_frame).collect();
    LabFrame {
        text: step.text.clone(),
        note: step.note.clone(),
        moved: moved(step).unwrap_or_default(),
        processes: of(processes),
        files: of(files),
    }
}

fn fit(text: &str, view: &StepView) -> String {
    shorten(&clean(text, &view.style), view.style.width, &view.style)
}

/// Adds a paragraph. On a screen it has at least two lines, so that the boxes do not move from step to step.
fn paragraph(lines: &mut Vec<String>, text: &str, emphasis: Emphasis, view: &StepView, rows: Option<usize>) {
    let text = clean(text, &view.style);
    let mut wrapped = if text.is_empty() { Vec::new() } else { wrap(&text, view.style.width, "", "") };
    if rows.is_some() {
        wrapped.resize(wrapped.len().max(2), String::new());
    }
    lines.extend(wrapped.iter().map(|line| view.style.paint(emphasis, line)));
}

fn picture(lines: &mut Vec<String>, view: &StepView, rows: Option<usize>) {
    let (above, more) = chosen(processes(view.step));
    let (below, _) = chosen(files(view.step));
    let room = rows.map(|rows| rows.saturating_sub(FIXED).max(2));
    let upper = room.map_or(usize::MAX, |room| (room / 3).max(1));
    let lower = room.map_or(usize::MAX, |room| room - (room / 3).max(1));
    lines.extend(boxes(&above, upper, &view.style));
    let more = if more > 0 { format!("   ({more} more not shown)") } else { String::new() };
    lines.push(arrow(view) + &more);
    lines.extend(boxes(&below, lower, &view.style));
}

/// Returns the line between processes and files: the bytes that the step moved.
fn arrow(view: &StepView) -> String {
    let Some(moved) = moved(view.step) else { return String::new() };
    let down = view.style.sign("▼", "v");
    view.style.paint(Emphasis::Good, &fit(&format!("   {down}  {moved}  {down}"), view))
}

fn moved(step: &LabStep) -> Option<String> {
    let moved = step.moved?;
    let to = step.files.get(moved.file).map_or("", |file| file.name.as_str());
    Some(format!("{}: {} to {to}", moved.pid, count(moved.bytes)))
}

/// Returns the boxes with the highest priority that fit, in their order, and the number of hidden ones.
fn chosen(columns: Vec<StepBox>) -> (Vec<StepBox>, usize) {
    let more = columns.len().saturating_sub(MAX_COLUMNS);
    let mut ranks: Vec<(u8, usize)> = columns.iter().enumerate().map(|(at, one)| (one.rank, at)).collect();
    ranks.sort_unstable();
    let kept: Vec<usize> = ranks.into_iter().take(MAX_COLUMNS).map(|one| one.1).collect();
    let chosen = columns.into_iter().enumerate().filter(|one| kept.contains(&one.0)).map(|one| one.1);
    (chosen.collect(), more)
}

fn processes(step: &LabStep) -> Vec<StepBox> {
    let boxes_of = |process: &StepProcess| -> Vec<StepBox> {
        let acts = step.actor == Some(process.pid);
        let full = |stream: &&StepStream| stream.pending.count + stream.unread.count > 0;
        let mut streams: Vec<&StepStream> = process.streams.iter().filter(full).collect();
        if streams.is_empty() {
            streams.extend(process.streams.first());
        }
        let is_parent = step.processes.iter().any(|other| other.parent == Some(process.pid));
        let header = header(process, is_parent);
        let column = |stream: Option<&StepStream>| StepBox {
            header: header.clone(),
            title: stream.map_or_else(String::new, title),
            rows: stream.map_or_else(Vec::new, content),
            rank: rank(process, stream, acts),
            strong: acts,
        };
        match streams.is_empty() {
            true => vec![column(None)],
            false => streams.into_iter().map(|stream| column(Some(stream))).collect(),
        }
    };
    step.processes.iter().flat_map(boxes_of).collect()
}

fn rank(process: &StepProcess, stream: Option<&StepStream>, acts: bool) -> u8 {
    let holds = stream.is_some_and(|stream| stream.pending.count + stream.unread.count > 0);
    match (acts, holds, process.ended.is_none()) {
        (true, _, _) => 0,
        (_, true, _) => 1,
        (_, _, true) => 2,
        _ => 3,
    }
}

/// Returns the header of a process: how it ended, else its parent.
fn header(process: &StepProcess, is_parent: bool) -> String {
    let more = match (&process.ended, process.parent) {
        (Some(how), _) => format!(", ended: {how}"),
        (None, Some(parent)) => format!(", child of {parent}"),
        (None, None) if is_parent => ", the parent".into(),
        (None, None) => String::new(),
    };
    format!("{} {}{more}", process.pid, process.name)
}

/// Returns the title of a stream: `stdout → file: 31 of 4096 B, 17 copied`. Leaves out the mode `full`, which the text
/// of the step explains.
fn title(stream: &StepStream) -> String {
    let name = match stream.fd {
        0 => "stdin".into(),
        1 => "stdout".into(),
        2 => "stderr".into(),
        fd => format!("fd {fd}"),
    };
    let (arrow, bytes) = match (stream.unread.count, stream.pending.count) {
        (0, pending) if stream.reads && pending == 0 => ("←", 0),
        (0, pending) => ("→", pending),
        (unread, _) => ("←", unread),
    };
    let more = match stream.mode {
        _ if stream.shared > 0 => format!(", {} copied", stream.shared),
        Some(Mode::Line) => ", by lines".into(),
        Some(Mode::None) => ", unbuffered".into(),
        _ => String::new(),
    };
    format!("{name} {arrow} {}: {bytes} of {} B{more}", stream.target, stream.buffer_bytes)
}

fn content(stream: &StepStream) -> Vec<(String, bool)> {
    let rows_of = |bytes: &KnownBytes| {
        let known: Vec<Option<u8>> = bytes.head.iter().copied().map(Some).collect();
        let mut rows: Vec<(String, bool)> =
            split(&known).into_iter().map(|row| (row.0, stream.copied)).collect();
        let more = bytes.count.saturating_sub(bytes.head.len() as u64);
        if more > 0 {
            rows.push((format!("… and {} more", count(more)), false));
        }
        rows
    };
    let mut rows = rows_of(&stream.unread);
    rows.extend(rows_of(&stream.pending));
    rows
}

fn files(step: &LabStep) -> Vec<StepBox> {
    let box_of = |file: &StepFile| {
        let moved = file.added.as_ref();
        let is_new = |from: usize, to: usize| {
            moved.is_some_and(|added| (to as u64) > added.start && (from as u64) < added.end)
        };
        let rows = split(&file.content).into_iter().map(|(text, from, to)| (text, is_new(from, to)));
        let mut rows: Vec<(String, bool)> = rows.collect();
        if file.bytes > file.content.len() as u64 {
            rows.push((format!("… {} in all", count(file.bytes)), false));
        }
        let (header, title) = file_lines(file);
        StepBox { header, title, rows, rank: u8::from(moved.is_none()), strong: moved.is_some() }
    };
    step.files.iter().map(box_of).collect()
}

/// Returns the header and the title of a file: its name and size, and the layer that has its bytes.
fn file_lines(file: &StepFile) -> (String, String) {
    let lines = file.content.iter().filter(|byte| **byte == Some(b'\n')).count();
    let s = if lines == 1 { "" } else { "s" };
    match file.kind {
        StreamKind::File if !file.written => (
            format!("{}: {} B, {lines} line{s}", file.name, file.bytes),
            "not written in this run so far".into(),
        ),
        StreamKind::File => {
            let device = match file.synced {
                None => "nothing is surely on the device: no fsync yet".to_string(),
                Some(synced) => format!("{synced} B are on the device"),
            };
            let header = format!("{}: {} B, {lines} line{s}", file.name, file.bytes);
            (header, format!("{} B in the kernel's page cache; {device}", file.bytes))
        }
        StreamKind::Pipe | StreamKind::Socket => {
            (format!("{}: {} B", file.name, file.bytes), "in the kernel until a process reads it".into())
        }
        _ => (format!("{}: {} B, {lines} line{s}", file.name, file.bytes), String::new()),
    }
}

/// Splits bytes into lines with escapes for invisible ones. Returns each line with its start and end offset.
fn split(bytes: &[Option<u8>]) -> Vec<(String, usize, usize)> {
    let mut rows = Vec::new();
    let (mut row, mut from) = (String::new(), 0);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            Some(b'\n') => row.push_str("\\n"),
            Some(b'\t') => row.push_str("\\t"),
            Some(b'\r') => row.push_str("\\r"),
            Some(byte @ b' '..=b'~') => row.push(char::from(*byte)),
            Some(byte) => row.push_str(&format!("\\x{byte:02x}")),
            None if row.ends_with('…') => {}
            None => row.push('…'),
        }
        if *byte == Some(b'\n') {
            rows.push((std::mem::take(&mut row), from, at + 1));
            from = at + 1;
        }
    }
    if !row.is_empty() {
        rows.push((row, from, bytes.len()));
    }
    rows
}

fn count(bytes: u64) -> String {
    if bytes == 1 { "1 byte".into() } else { format!("{bytes} bytes") }
}
