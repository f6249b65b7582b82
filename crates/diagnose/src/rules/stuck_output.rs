//! stuck-output: bytes wait in the program while it waits for something else.
//!
//! Evidence: for at least a second looks show the same oldest byte of a stream pending, or until a write soon
//! after the last of them, nothing was written there in between, and the program was in a waiting call at most
//! of the looks. A look that does not tell of the stream is no evidence of anything. Not meant: a program that
//! waits in a write (its reader is slow), one that computes, and a copy inherited over a fork.

use weir_model::trace::{Buffer, SnapshotMoment};
use weir_model::{Direction, Finding, Severity};

use crate::context::{Context, Look, same_beginning};
use crate::fix::Topic;
use crate::rule::{GainKind, Rule, SeverityRule};
use crate::words::{count, preview};
use weir_model::duration::format_seconds;

pub(crate) const RULE: Rule = Rule {
    id: "stuck-output",
    title: "Output does not appear",
    meaning: "bytes stay in a user-space buffer while the program waits for something else",
    position: 40,
    severity: SeverityRule::Effect { least: Severity::Warn, most: Severity::High },
    gain: GainKind::None,
    judge,
    ..Rule::DEFAULT
};

/// Sooner than this nobody misses a line.
const PATIENCE_S: f64 = 1.0;
/// As much is taken for it: looks are not on time to the millisecond.
const LEAST_S: f64 = PATIENCE_S - 0.05;

/// Longer than this somebody has given up on it.
const LONG_S: f64 = 30.0;

/// Bytes that stay are looked at this often.
const NEXT_LOOK_S: f64 = 0.65;

/// So many calls of a flow are seen one by one.
const SEEN_FIRST: u64 = 8;

/// One stream with bytes pending from the first look to the last.
struct Wait<'a> {
    first: Look<'a>,
    last: Look<'a>,
    buffer: &'a Buffer,
    looks: u32,
    waiting: u32,
    waits_in: &'a str,
}

fn judge(context: &Context) -> Vec<Finding> {
    let pids = context.recording.processes.iter().map(|process| process.pid);
    pids.filter_map(|pid| longest(context, pid)).filter_map(|wait| found(context, &wait)).collect()
}

/// The longest wait of a process's bytes.
fn longest<'a>(context: &Context<'a>, pid: u32) -> Option<Wait<'a>> {
    let looks = context.looks(pid);
    // Bytes are known to wait from a look on, and at most until a write soon after another.
    let most_s = |first: &Look, last: &Look| last.at_s - first.at_s + NEXT_LOOK_S;
    if most_s(looks.first()?, looks.last()?) < LEAST_S {
        return None;
    }
    let mut open: Vec<Wait> = Vec::new();
    let mut longest: Option<Wait> = None;
    for look in looks {
        let mut next = Vec::new();
        for buffer in look.buffers.iter().filter(|buffer| context.own_pending(look, buffer) > 0) {
            let same = open.iter().position(|wait| continues(context, wait, look, buffer));
            let mut wait = match same {
                Some(index) => open.swap_remove(index),
                None => Wait { first: *look, last: *look, buffer, looks: 0, waiting: 0, waits_in: "" },
            };
            (wait.last, wait.buffer, wait.looks) = (*look, buffer, wait.looks + 1);
            if waits(look.waits_in) {
                (wait.waiting, wait.waits_in) = (wait.waiting + 1, look.waits_in);
            }
            next.push(wait);
        }
        let (kept, done): (Vec<_>, Vec<_>) = open.into_iter().partition(|wait| wait.untold_by(look));
        next.extend(kept);
        longest = longer(context, done.into_iter().chain(longest));
        open = next;
    }
    longer(context, open.into_iter().chain(longest))
}

fn longer<'a>(context: &Context, waits: impl Iterator<Item = Wait<'a>>) -> Option<Wait<'a>> {
    waits.max_by(|a, b| a.length_s(context).total_cmp(&b.length_s(context)))
}

impl Wait<'_> {
    fn length_s(&self, context: &Context) -> f64 {
        self.until(context) - self.first.at_s
    }

    /// When the bytes went, if that was soon after the last look; else the last look.
    fn until(&self, context: &Context) -> f64 {
        let (pid, fd, last_s) = (self.first.pid, self.buffer.fd, self.last.at_s);
        let out = context.flows(pid).iter().filter(|flow| flow.fd == fd && flow.direction != Direction::In);
        if out.clone().any(|flow| flow.first_s <= last_s && flow.last_s > last_s && flow.calls > SEEN_FIRST) {
            return last_s;
        }
        let writes = context.calls_between(pid, last_s, last_s + NEXT_LOOK_S).iter().filter(|seen| {
            let call = seen.call;
            call.fd == fd && call.op.writes() && call.result > 0
        });
        let flows = out.flat_map(|flow| [flow.first_s, flow.last_s]);
        let gone = writes.map(|seen| seen.at_s).chain(flows).filter(|&at_s| at_s > last_s);
        let gone_s = gone.fold(f64::INFINITY, f64::min);
        if gone_s <= last_s + NEXT_LOOK_S { gone_s } else { last_s }
    }

    /// Whether a look says nothing of this stream: it was at another library's streams.
    fn untold_by(&self, look: &Look) -> bool {
        let told = look.buffers.iter().any(|buffer| buffer.address == self.buffer.address);
        look.moment == SnapshotMoment::Sample && !told
    }
}

/// Whether a stream's oldest pending byte is still the one of the looks before.
fn continues(context: &Context, wait: &Wait, look: &Look, buffer: &Buffer) -> bool {
    let before = wait.buffer;
    let image = |at_s| context.image_at(look.pid, at_s).map(|(index, _)| index);
    before.address == buffer.address
        && before.fd == buffer.fd
        && same_beginning(&before.pending, &buffer.pending)
        && buffer.pending_bytes >= before.pending_bytes
        && image(wait.last.at_s) == image(look.at_s)
        && !context.wrote_between(look.pid, buffer.fd, wait.last.at_s, look.at_s)
        && (before.pending_bytes == buffer.pending_bytes || !busy(context, wait, look, buffer.fd))
}

/// Whether calls on the descriptor may have gone by unseen between two looks.
fn busy(context: &Context, wait: &Wait, look: &Look, fd: i32) -> bool {
    let flows =
        context.flows(look.pid).iter().filter(|flow| flow.fd == fd && flow.direction != Direction::In);
    let around = |first_s: f64, last_s: f64| first_s <= wait.last.at_s && last_s >= look.at_s;
    flows.into_iter().any(|flow| around(flow.first_s, flow.last_s) && flow.calls > SEEN_FIRST)
}

/// Calls that wait for the reader of these very bytes, or for the device.
const OWN_WAITS: &[&str] = &["write", "send", "splice", "tee", "copy_file_range", "sync", "running"];

/// Whether a system call is one to wait in for others.
fn waits(call: &str) -> bool {
    !call.is_empty() && !OWN_WAITS.iter().any(|own| call.contains(own))
}

/// Of what waited already when weir came, nobody knows since when.
fn how_long(context: &Context, wait: &Wait) -> String {
    let length = format_seconds(wait.length_s(context));
    if context.recording.command.is_empty() && wait.first.at_s < PATIENCE_S / 2.0 {
        return format!("{length} or longer (all the time that weir has looked)");
    }
    format!("{length} since {} into the run", format_seconds(wait.first.at_s))
}

fn found(context: &Context, wait: &Wait) -> Option<Finding> {
    let length_s = wait.length_s(context);
    let (pid, fd) = (wait.first.pid, wait.buffer.fd);
    let file = context.file_at(pid, fd, wait.last.at_s);
    let forgotten = file.is_some_and(|file| context.is_null(file));
    if length_s < LEAST_S || wait.waiting * 2 < wait.looks || forgotten {
        return None;
    }
    let severity = if length_s >= LONG_S { Severity::High } else { Severity::Warn };
    let bytes = wait.buffer.pending_bytes;
    let why = format!(
        "{} {} waited in the buffer of {} for {}, while it waits in {}: {}.",
        count(bytes, "byte"),
        if bytes == 1 { "has" } else { "have" },
        context.name(pid),
        how_long(context, wait),
        wait.waits_in,
        preview(&wait.buffer.pending)
    );
    let code = context.code(pid, wait.first.at_s, Topic::Flush);
    let fix = context.written_out("--max-delay 100ms", (pid, wait.first.at_s), wait.buffer, &code);
    let draft =
        context.draft(&RULE, severity, pid, fd, file).count("pending_bytes", wait.buffer.pending_bytes);
    let draft = draft.figure("waited_s", length_s).figure("since_s", wait.first.at_s);
    let draft = draft.count("buffer_bytes", wait.buffer.buffer_bytes).count("looks", wait.looks.into());
    let draft = draft.wrote(context.recording.write_site(pid, wait.buffer.address, wait.last.at_s));
    Some(draft.say(why, fix))
}
