//! Derives a question from what a traced program really did.

use weir_model::advise::{AdviceLanguage, AllowedLoss, TracedProgram};
use weir_model::trace::{CallSite, StreamRow, TraceDocument};
use weir_model::{Direction, SourceLanguage, StreamKind, Untrusted};

/// Call sites that are named; more do not fit a screen.
const SITES: usize = 4;

/// A program that syncs at least each of so many writes wants each record on the device: a transaction has a few writes.
const WRITES_A_SYNC: u64 = 10;

/// The part of a question that a trace answers.
#[derive(Debug, Clone, PartialEq)]
pub struct TracedQuestion {
    /// Calls, bytes and findings of the stream.
    pub program: TracedProgram,
    /// Bytes of a typical write.
    pub record_bytes: u64,
    /// Typical writes per second while the program ran.
    pub rate: f64,
    /// Processes that wrote the same file.
    pub sharers: u32,
    /// The loss that the program allows, if its syncs show it.
    pub loss: Option<AllowedLoss>,
    /// Language of the program, if the trace knows it and weir advise has code for it.
    pub lang: Option<AdviceLanguage>,
}

/// Returns the question of the stream that costs most of those that write a file. Fails with a sentence if the trace has
/// no such stream.
pub fn traced_question(trace: &TraceDocument) -> Result<TracedQuestion, String> {
    let writes = |row: &&StreamRow| {
        row.kind == StreamKind::File && row.direction != Direction::In && row.calls > 0 && row.bytes > 0
    };
    let files = || trace.streams.iter().filter(writes);
    let row = files()
        .max_by(|one, other| one.cost_s.total_cmp(&other.cost_s).then(one.calls.cmp(&other.calls)))
        .ok_or_else(|| without_a_file(trace))?;
    let record_bytes = row.typical_bytes.unwrap_or(1).max(1);
    let elapsed_s = trace.elapsed_s.max(1e-3);
    let same_file = files().filter(|other| match (other.inode, row.inode) {
        (Some(one), Some(other)) => one == other,
        _ => other.path == row.path,
    });
    let mut rate = 0.0;
    let mut writers = Vec::new();
    for stream in same_file {
        rate += stream.bytes as f64 / record_bytes as f64 / elapsed_s;
        writers.push(stream.pid);
    }
    writers.sort_unstable();
    writers.dedup();
    Ok(TracedQuestion {
        program: program(trace, row),
        record_bytes,
        rate,
        sharers: writers.len() as u32,
        loss: loss(row, elapsed_s),
        lang: language(trace, row.pid),
    })
}

/// Returns the loss that the syncs of a stream allow; None if they do not show it, as a single sync at the end.
fn loss(row: &StreamRow, elapsed_s: f64) -> Option<AllowedLoss> {
    match row.syncs {
        0 | 1 => None,
        syncs if syncs.saturating_mul(WRITES_A_SYNC) >= row.calls => Some(AllowedLoss::None),
        syncs => (syncs as f64 >= elapsed_s).then_some(AllowedLoss::Second),
    }
}

/// Returns the sentence for a trace without a stream that writes a file.
fn without_a_file(trace: &TraceDocument) -> String {
    let is_output = |row: &&StreamRow| row.fd == 1 && row.direction != Direction::In && row.calls > 0;
    let Some(output) = trace.streams.iter().find(is_output) else {
        return "the trace has no stream that writes a file: nothing to advise".into();
    };
    format!(
        "the trace has no stream that writes a file, and advice is for files. If the output of {} goes to a file in daily \
         use, trace it so: weir trace --json trace.json -- COMMAND >FILE, then weir advise --for trace.json",
        output.comm
    )
}

fn program(trace: &TraceDocument, row: &StreamRow) -> TracedProgram {
    let of_stream = || trace.findings.iter().filter(|finding| finding.pid == row.pid && finding.fd == row.fd);
    let mut change: Vec<Untrusted> = Vec::new();
    for site in of_stream().filter_map(|finding| finding.wrote.as_ref()).filter_map(site) {
        if !change.contains(&site) {
            change.push(site);
        }
    }
    change.truncate(SITES);
    TracedProgram {
        comm: row.comm.clone(),
        fd: row.fd,
        path: row.path.clone(),
        calls: row.calls,
        bytes: row.bytes,
        elapsed_s: trace.elapsed_s,
        syncs: row.syncs,
        mode: row.mode,
        change,
        findings: of_stream().map(|finding| finding.id.as_str().to_string()).collect(),
    }
}

/// Returns the innermost function of the program itself, as `function at file:line`.
fn site(call_site: &CallSite) -> Option<Untrusted> {
    let frame = call_site.frames.iter().find(|frame| !frame.library)?;
    let function = frame.function.as_ref().map(|name| name.exact().to_string());
    let line = frame.file.as_ref().map(|file| match frame.line {
        Some(line) => format!("{}:{line}", file.exact()),
        None => file.exact().to_string(),
    });
    let text = match (function, line) {
        (Some(function), Some(line)) => format!("{function} at {line}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => return None,
    };
    Some(text.as_str().into())
}

fn language(trace: &TraceDocument, pid: u32) -> Option<AdviceLanguage> {
    let process = trace.processes.iter().find(|process| process.pid == pid)?;
    Some(match process.images.last()?.language? {
        SourceLanguage::C => AdviceLanguage::C,
        SourceLanguage::Cpp => AdviceLanguage::Cpp,
        SourceLanguage::Python => AdviceLanguage::Python,
        SourceLanguage::Rust => AdviceLanguage::Rust,
        SourceLanguage::Go => AdviceLanguage::Go,
        SourceLanguage::Java => AdviceLanguage::Java,
        SourceLanguage::Node => AdviceLanguage::Node,
        SourceLanguage::Shell => AdviceLanguage::Shell,
        _ => return None,
    })
}
