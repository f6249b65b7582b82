//! mixed-order: buffered and direct output to one file arrive in another order than they were made.
//!
//! Evidence: a snapshot shows pending bytes; then the program, or a child that it started then, writes other bytes to the same
//! open file, or to another open file of the same inode if both append; and the pending bytes are written only after that (a
//! write begins with them, or a later snapshot still has them). Without a snapshot the time at which the bytes were made is
//! unknown. If a snapshot before the other write has different bytes in the buffer, a call that was not recorded had written
//! them.

use weir_model::trace::{Buffer, IN_VFORK, RuntimeId, SnapshotMoment};
use weir_model::{Finding, Severity, SourceLanguage};

use crate::code_fix::CodeFix;
use crate::context::{BufferSnapshot, RuleContext, TimedCall, same_prefix};
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::run_advice::RunOption;
use crate::text::{count, preview};

pub(crate) const RULE: Rule = Rule {
    id: "mixed-order",
    title: "Output in the wrong order",
    meaning: "buffered and direct output to one file arrive out of order",
    position: 110,
    severity: SeverityRule::Effect { least: Severity::Warn, most: Severity::High },
    gain: GainKind::None,
    judge,
    ..Rule::DEFAULT
};

/// The most seconds by which the parent's snapshot may be dated later than the fork's return in the child.
const FORK_SKEW_S: f64 = 0.05;

fn judge(context: &RuleContext) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for snapshot in context.all_snapshots() {
        let pending =
            snapshot.buffers.iter().filter(|buffer| context.own_pending_bytes(&snapshot, buffer) > 0);
        for buffer in pending {
            let known = findings.iter().any(|one| (one.pid, one.fd) == (snapshot.pid, buffer.fd));
            if !known && !buffer.pending.is_empty() {
                findings.extend(judge_buffer(context, &snapshot, buffer));
            }
        }
    }
    findings
}

fn judge_buffer(context: &RuleContext, snapshot: &BufferSnapshot, buffer: &Buffer) -> Option<Finding> {
    let file = context.file_at(snapshot.pid, buffer.fd, snapshot.at_s);
    let file = file.filter(|&file| !context.is_null(file))?;
    let calls = context.calls_in_write_order(file);
    let mut writes_after = calls.iter().filter(|timed| {
        let call = timed.call;
        // A running process may have made the pending bytes, and have written others before, while its memory was read.
        timed.at_s >= snapshot.read_until_s && call.op.writes() && call.result > 0 && !call.head.is_empty()
    });
    let overtaking = writes_after.find(|timed| !same_prefix(&timed.call.head, &buffer.pending))?;
    let written_before = calls.iter().any(|timed| {
        let between = timed.at_s >= snapshot.at_s && timed.at_s < overtaking.at_s;
        between && timed.call.op.writes() && same_prefix(&timed.call.head, &buffer.pending)
    });
    if written_before
        || may_be_flush(context, snapshot, buffer, overtaking)
        || may_be_another_threads(context, snapshot, buffer, overtaking, file)
        || buffer_changed(context, snapshot, buffer, overtaking.at_s)
        || !is_by_family(context, snapshot, overtaking)
        || !written_later(context, snapshot, buffer, &calls, overtaking.at_s)
    {
        return None;
    }
    Some(finding(context, snapshot, buffer, file, overtaking))
}

/// Returns whether a write may be the stream's own: a thread of CPython takes more than a buffer holds out of the stream before it
/// writes it, and another thread can put the pending bytes there meanwhile.
fn may_be_flush(
    context: &RuleContext,
    snapshot: &BufferSnapshot,
    buffer: &Buffer,
    overtaking: &TimedCall,
) -> bool {
    let threads = context.process(snapshot.pid).map_or(0, |process| process.threads);
    let same_stream = (overtaking.pid, overtaking.call.fd) == (snapshot.pid, buffer.fd);
    threads > 1
        && buffer.walker == RuntimeId::CPYTHON
        && same_stream
        && overtaking.call.result as u64 >= buffer.buffer_bytes.max(1)
}

/// Returns whether a write may be that of a stream that another thread uses: threads with a stream each have no order among them.
/// A thread that opens the file for itself can have a stream that no snapshot shows.
fn may_be_another_threads(
    context: &RuleContext,
    snapshot: &BufferSnapshot,
    buffer: &Buffer,
    overtaking: &TimedCall,
    file: u32,
) -> bool {
    let threads = context.process(snapshot.pid).map_or(0, |process| process.threads);
    let opened_again =
        overtaking.pid == snapshot.pid && overtaking.call.file.is_some_and(|other| other != file);
    threads > 1 && (opened_again || is_of_another_stream(context, snapshot, buffer, overtaking))
}

/// Returns whether a write used the descriptor of another stream of the same process.
fn is_of_another_stream(
    context: &RuleContext,
    snapshot: &BufferSnapshot,
    buffer: &Buffer,
    overtaking: &TimedCall,
) -> bool {
    let fd = overtaking.call.fd;
    let mut buffers = context.snapshots(snapshot.pid).iter().flat_map(|snapshot| snapshot.buffers);
    overtaking.pid == snapshot.pid && fd != buffer.fd && buffers.any(|other| other.fd == fd)
}

/// The advice for std::cout with a buffer of its own beside that of C's stdout.
const TWO_BUFFERS: &str = "remove std::ios::sync_with_stdio(false), or std::cout << std::flush; before each printf and std::fflush(stdout); \
    before each std::cout";

/// Returns whether the overtaking write is one of std::cout's own buffer beside C's stdout, or the other way round: the process has
/// both buffers for the descriptor.
fn own_buffer_of_cout(
    context: &RuleContext,
    snapshot: &BufferSnapshot,
    buffer: &Buffer,
    overtaking: &TimedCall,
) -> bool {
    let is_c = |walker: RuntimeId| matches!(walker, RuntimeId::GLIBC | RuntimeId::MUSL);
    let is_rival = |other: &Buffer| {
        let of_both = is_c(buffer.walker) && other.walker == RuntimeId::CPP
            || buffer.walker == RuntimeId::CPP && is_c(other.walker);
        other.fd == buffer.fd && of_both
    };
    let mut buffers = context.snapshots(snapshot.pid).iter().flat_map(|snapshot| snapshot.buffers);
    buffer.fd == 1 && (overtaking.pid, overtaking.call.fd) == (snapshot.pid, 1) && buffers.any(is_rival)
}

/// Returns whether a snapshot up to a time shows the buffer without the pending bytes.
fn buffer_changed(context: &RuleContext, snapshot: &BufferSnapshot, buffer: &Buffer, at_s: f64) -> bool {
    let later = context.snapshots(snapshot.pid).iter();
    let between = later.filter(|later| later.at_s > snapshot.at_s && later.at_s <= at_s);
    let mut same = between.flat_map(|later| later.buffers).filter(|other| other.address == buffer.address);
    same.any(|other| {
        other.pending_bytes < buffer.pending_bytes || !same_prefix(&other.pending, &buffer.pending)
    })
}

/// Returns whether the process itself, or a child that it started after the snapshot, made the overtaking write.
fn is_by_family(context: &RuleContext, snapshot: &BufferSnapshot, overtaking: &TimedCall) -> bool {
    // Only a snapshot of the fork itself shows what was pending before it; bytes that a later one shows, the child never had.
    // The parent also rests in vfork(2), until the child executes a program.
    let at_fork = snapshot.moment == SnapshotMoment::Fork || snapshot.waits_in == IN_VFORK;
    let skew_s = if at_fork { FORK_SKEW_S } else { 0.0 };
    let started_after = || context.forked_at(overtaking.pid) >= snapshot.at_s - skew_s;
    overtaking.pid == snapshot.pid || context.is_descendant(overtaking.pid, snapshot.pid) && started_after()
}

/// Returns whether the pending bytes were written, or still pending, after a time.
fn written_later(
    context: &RuleContext,
    snapshot: &BufferSnapshot,
    buffer: &Buffer,
    calls: &[TimedCall],
    at_s: f64,
) -> bool {
    let written = calls.iter().any(|timed| {
        let by_owner = timed.pid == snapshot.pid && timed.at_s > at_s && timed.call.op.writes();
        by_owner && same_prefix(&timed.call.head, &buffer.pending)
    });
    let still_pending = || {
        let later = context.snapshots(snapshot.pid).iter().filter(|later| later.at_s > at_s);
        let mut buffers = later.flat_map(|later| later.buffers);
        buffers.any(|other| {
            other.address == buffer.address
                && other.pending_bytes >= buffer.pending_bytes
                && same_prefix(&other.pending, &buffer.pending)
        })
    };
    written || still_pending()
}

/// Returns the fix of a program that writes to a file through a stream and directly.
fn one_stream(
    context: &RuleContext,
    snapshot: &BufferSnapshot,
    (fd, file): (i32, Option<u32>),
    direct_fd: i32,
) -> String {
    let code = |fix| context.code_fix(snapshot.pid, snapshot.at_s, (fd, file), fix);
    let direct = match context.language(snapshot.pid, snapshot.at_s) {
        SourceLanguage::Python => "os.write()",
        SourceLanguage::Perl | SourceLanguage::Ruby => "syswrite",
        _ => "write(2)",
    };
    let flush = match code(CodeFix::Flush).code.trim_end_matches(';') {
        "" => "a flush",
        flush => flush,
    };
    // Standard error writes each message directly.
    let lines =
        if direct_fd == 2 && fd != 2 { format!(", or {}", code(CodeFix::WholeLines)) } else { String::new() };
    format!("write everything through the one stream, or {flush} before each {direct}{lines}")
}

fn finding(
    context: &RuleContext,
    snapshot: &BufferSnapshot,
    buffer: &Buffer,
    file: u32,
    overtaking: &TimedCall,
) -> Finding {
    let (pid, call) = (snapshot.pid, overtaking.call);
    let by_itself = overtaking.pid == pid;
    // Messages on standard error are meant to appear at once, even in a shared log.
    let severity = if call.fd == 2 && buffer.fd != 2 { Severity::Warn } else { Severity::High };
    let own_buffer = own_buffer_of_cout(context, snapshot, buffer, overtaking);
    let writer = match by_itself {
        _ if own_buffer => {
            let (other, own) = match buffer.walker == RuntimeId::CPP {
                true => ("printf", "std::cout"),
                false => ("std::cout", "printf"),
            };
            format!("{other}, which has another buffer than {own} after sync_with_stdio(false),")
        }
        true if is_of_another_stream(context, snapshot, buffer, overtaking) => "another stream".into(),
        true => "a direct write".into(),
        false => context.name_at(overtaking.pid, overtaking.at_s),
    };
    let why = format!(
        "{} of {} ({}) were still in its buffer when {writer} put {} in front of them.",
        count(buffer.pending_bytes, "byte"),
        context.name_at(pid, snapshot.at_s),
        preview(&buffer.pending),
        preview(&call.head)
    );
    let (option, code) = match by_itself {
        _ if own_buffer => (None, TWO_BUFFERS.into()),
        true => (Some(RunOption::FixOrder), one_stream(context, snapshot, (buffer.fd, Some(file)), call.fd)),
        false => {
            let object = (buffer.fd, Some(file));
            (
                context.line_option(&[buffer.fd], file),
                context.code_fix(pid, snapshot.at_s, object, CodeFix::FlushBeforeFork).to_string(),
            )
        }
    };
    // `weir run` keeps the order within one open file only.
    let option = option.filter(|_| call.file == Some(file));
    let command = option.and_then(|option| context.weir_run(option, pid, snapshot.at_s));
    let finding = context.finding(&RULE, severity, pid, buffer.fd, Some(file));
    let finding = finding.count("overtaken_bytes", buffer.pending_bytes);
    let finding = finding.count("overtaking_bytes", call.result as u64);
    finding.figure("at_s", overtaking.at_s).build_with_command(why, command, code)
}
