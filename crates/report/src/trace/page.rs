//! The page of `weir trace`.

use weir_model::duration::format_seconds;
use weir_model::trace::document::StreamRow;
use weir_model::trace::{BackendKind, Exit, FindingGroup, TraceDocument};
use weir_model::{Finding, Untrusted};

use super::findings::FILES_NAMED;
use super::labels::{NAMELESS, counted, evidence, process_label, thousands};
use super::listed_stream::{ListedStream, time_of_program};
use super::page_streams::PageStreams;
use super::{findings, pictures, pipeline_picture, pipelines};
use crate::block::{Block, FindingBlock};
use crate::number::{ABSENT, TICK_S, UNDIVIDED};
use crate::page::Body;
use crate::table::{Align, Column, Table, TableRow};

/// Rows of a table in a page: the JSON inside of the page has all.
pub(super) const MAX_ROWS: usize = 1000;

/// Returns the title of the page of a trace.
pub fn page_title(document: &TraceDocument) -> String {
    let command = command(document);
    match command.is_empty() {
        true => "weir trace".into(),
        false => format!("weir trace: {}", shortened(&command)),
    }
}

/// Returns a command of a length that fits a title.
fn shortened(command: &str) -> String {
    const MAX_CHARS: usize = 90;
    let one_line = command.replace('\n', " ");
    match one_line.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{}…", &one_line[..at]),
        None => one_line,
    }
}

fn command(document: &TraceDocument) -> String {
    document.command.join(" ")
}

/// Adds a trace to a page: verdict and findings first, then the streams, then the circumstances.
pub fn page(document: &TraceDocument, body: &mut Body, prefix: &str) {
    let streams = PageStreams::of(document);
    body.blocks(&[Block::Facts(summary(document)), verdict(document)]);
    let groups = findings::sorted(&document.findings, &document.processes, document.elapsed_s);
    if !groups.is_empty() {
        body.heading(&format!("{prefix}findings"), &format!("Findings: {}", groups.len()));
    }
    for group in &groups {
        let stream = stream_of(document, &group.first).filter(|at| streams.shown.contains(at));
        body.blocks(&[Block::Finding(shown(document, group))]);
        if let Some(at) = stream.filter(|_| !document.timeline.is_empty()) {
            body.link(&pictures::lane_ids(prefix, at), "Its stream in the timeline");
        }
    }
    for (number, pipeline) in document.pipelines.iter().enumerate() {
        if number == 0 {
            body.heading(&format!("{prefix}pipelines"), "Pipelines");
        }
        if let Some(picture) = pipeline_picture::pipeline(pipeline, number, prefix) {
            body.picture(picture, &pipelines::blocks(std::slice::from_ref(pipeline)));
        }
    }
    body.heading(&format!("{prefix}streams"), &plural_streams(document.streams.len()));
    streams.add(document, body, prefix);
    rest(document, body, prefix);
}

/// Adds the calls that move no bytes, the processes and the circumstances.
fn rest(document: &TraceDocument, body: &mut Body, prefix: &str) {
    body.heading(&format!("{prefix}run"), "The run");
    if !document.command.is_empty() {
        body.command(&command(document));
    }
    body.facts(&circumstances(document));
    body.environment(&document.environment);
    body.blocks(&document.blind.iter().cloned().map(Block::Warning).collect::<Vec<_>>());
    if !document.processes.is_empty() {
        let mut blocks = vec![Block::Table(processes(document))];
        if document.processes.iter().any(|process| process.user_s + process.system_s < TICK_S) {
            blocks.push(Block::Aside(format!("{ABSENT}: this CPU time {UNDIVIDED}")));
        }
        body.details("Processes", &blocks);
    }
    if !document.other_calls.is_empty() {
        body.details("Calls that move no bytes", &[Block::Table(other_calls(document))]);
    }
}

fn plural_streams(number: usize) -> String {
    format!("Streams: {number}")
}

fn verdict(document: &TraceDocument) -> Block {
    match document.verdict.is_empty() {
        true => Block::Lead("No problem was found in this run.".into()),
        false => Block::Verdict(document.verdict.lines().map(String::from).collect()),
    }
}

fn summary(document: &TraceDocument) -> Vec<String> {
    let calls: u64 = document.streams.iter().map(|stream| stream.calls).sum();
    let ended = match document.exit {
        Some(Exit::Code(code)) => format!("exit status {code}"),
        Some(Exit::Signal(number)) => format!("ended by signal {number}"),
        None => "still running at the end".into(),
    };
    let exact = match document.overhead.uncounted_calls {
        _ if document.exact => "every call was counted".into(),
        0 => "sampled, totals from the kernel".into(),
        number => format!("at most {} not counted", counted(number, "call")),
    };
    vec![format_seconds(document.elapsed_s), counted(calls, "call"), exact, ended]
}

/// Returns the index of the stream of a finding.
fn stream_of(document: &TraceDocument, finding: &Finding) -> Option<usize> {
    let same = |stream: &&StreamRow| stream.pid == finding.pid && stream.fd == finding.fd;
    let with_path = |stream: &StreamRow| same(&stream) && stream.path == finding.path;
    let streams = &document.streams;
    streams.iter().position(with_path).or_else(|| streams.iter().position(|stream| same(&stream)))
}

fn shown(document: &TraceDocument, group: &FindingGroup) -> FindingBlock {
    let finding = &group.first;
    let stream = stream_of(document, finding).map(|at| &document.streams[at]);
    let flags =
        stream.map_or((true, false, false), |stream| (stream.exact, stream.estimated, stream.at_least));
    let certainty = findings::certainty_of_flags(flags);
    let mut facts = Vec::new();
    if !finding.why.is_empty() {
        facts.push(("why", finding.why.clone()));
    }
    let figures: Vec<String> =
        finding.evidence.iter().map(|(name, value)| evidence(name, *value, certainty)).collect();
    if !figures.is_empty() {
        facts.push(("seen", figures.join(" · ")));
    }
    facts.extend(findings::other_files(group, FILES_NAMED));
    facts.extend(findings::fix(&finding.fix, finding.command.as_deref()));
    facts.extend(findings::gains(finding).map(|text| ("gain", text)));
    FindingBlock {
        severity: finding.severity,
        name: finding.id.to_string(),
        stream: place(document, finding),
        facts,
        files: if group.others.len() > FILES_NAMED { files(group) } else { Vec::new() },
    }
}

/// Returns the other files of a finding with their sentences.
fn files(group: &FindingGroup) -> Vec<String> {
    group.others.iter().take(MAX_ROWS).map(|finding| finding.why.clone()).collect()
}

/// Returns process, descriptor and path of a finding, as far as it has them.
fn place(document: &TraceDocument, finding: &Finding) -> String {
    let process = document.processes.iter().find(|process| process.pid == finding.pid);
    let at_s = time_of_program(finding, process, document.streams.iter().map(ListedStream::from));
    let image = process.and_then(|process| process.image_at(at_s?));
    let comm = image.map(|(_, image)| &image.comm).or(process.map(|process| process.comm()));
    let parts = [
        (finding.pid != 0).then(|| process_label(comm.unwrap_or(&NAMELESS), finding.pid)),
        (finding.fd >= 0).then(|| format!("fd {}", finding.fd)),
        (!finding.path.is_empty()).then(|| finding.path.to_string()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn processes(document: &TraceDocument) -> Table {
    let columns = vec![
        Column::new("process", "", Align::Left),
        Column::new("command", "", Align::Path),
        Column::new("started", "s", Align::Decimal),
        Column::new("ended", "s", Align::Decimal),
        Column::new("CPU time", "s", Align::Decimal),
        Column::new("user", "s", Align::Decimal),
        Column::new("system", "s", Align::Decimal),
    ];
    let row = |process: &weir_model::trace::Process| {
        let cpu_s = process.user_s + process.system_s;
        let part = |seconds: f64| if cpu_s < TICK_S { ABSENT.to_string() } else { format!("{seconds:.3}") };
        let words = process.images.last().map_or(String::new(), |image| match image.argv.is_empty() {
            true => image.exe.to_string(),
            false => Untrusted::join(&image.argv, " "),
        });
        let seconds = |seconds: f64| format!("{seconds:.3}");
        let cells = vec![
            process_label(process.comm(), process.pid).into(),
            shortened(&words).into(),
            seconds(process.started_s).into(),
            process.ended_s.map_or(ABSENT.into(), seconds).into(),
            seconds(cpu_s).into(),
            part(process.user_s).into(),
            part(process.system_s).into(),
        ];
        TableRow { cells, ..TableRow::default() }
    };
    Table { columns, rows: document.processes.iter().take(MAX_ROWS).map(row).collect(), ..Table::default() }
}

fn other_calls(document: &TraceDocument) -> Table {
    let columns = vec![
        Column::new("process", "", Align::Left),
        Column::new("call", "", Align::Left),
        Column::new("calls", "", Align::Right),
        Column::new("failed", "", Align::Right),
    ];
    let row = |one: &weir_model::trace::document::OtherCallsRow| TableRow {
        cells: vec![
            process_label(&one.comm, one.pid).into(),
            one.call.as_str().into(),
            thousands(one.calls).into(),
            thousands(one.failed).into(),
        ],
        ..TableRow::default()
    };
    Table { columns, rows: document.other_calls.iter().take(MAX_ROWS).map(row).collect(), ..Table::default() }
}

fn circumstances(document: &TraceDocument) -> Vec<(&'static str, String)> {
    let backend = match document.backend {
        BackendKind::Ebpf => "eBPF programs at tracepoints",
        BackendKind::Ptrace => "ptrace(2)",
        BackendKind::Sample => "samples of /proc",
    };
    let overhead = &document.overhead;
    let prices = &document.prices;
    let ns = |ns: f64| format_seconds(ns / 1e9);
    vec![
        ("Recorded by", backend.into()),
        ("Why not a better backend", document.backend_reason.clone()),
        ("Cost of the trace", format!("about {}", format_seconds(overhead.total_s()))),
        ("Delay of the start", format_seconds(overhead.startup_s)),
        ("Events lost", thousands(overhead.lost_events)),
        ("Price of a small write to a file", ns(prices.file_write_ns)),
        ("Price of a small read of a file", ns(prices.file_read_ns)),
        ("Price of a call on a pipe", ns(prices.pipe_ns)),
        ("Price of an fdatasync", ns(prices.sync_ns)),
    ]
}
