//! What is known of bytes in user-space buffers: whose they are, and whether they ever left.

use weir_model::trace::{Buffer, SnapshotMoment};
use weir_model::{Direction, Finding, Severity, StreamKind};

use crate::context::{Context, Look, Seen, same_beginning};
use crate::fix::Topic;
use crate::rule::Rule;
use crate::words::{count, preview};

/// Bytes that a process had pending when it, or its image, ended.
pub(crate) struct Lost<'a> {
    pub rule: &'static Rule,
    pub look: Look<'a>,
    pub buffer: &'a Buffer,
    /// How it ended, as in "SIGKILL ended it" or "it called _exit(2)".
    pub how: String,
    /// What the program should do instead.
    pub topic: Topic,
}

impl<'a> Context<'a> {
    /// Pending bytes that are the process's own: a forked child's copy of its parent's is not.
    ///
    /// Where the parent was not looked at when it forked, nobody knows, and none are counted.
    pub fn own_pending(&self, look: &Look, buffer: &Buffer) -> u64 {
        if buffer.fd < 0 || buffer.pending_bytes == 0 {
            return 0;
        }
        let image = self.image_at(look.pid, look.at_s).map_or(0, |(index, _)| index);
        let parent = self.process(look.pid).and_then(|process| process.parent);
        let Some(parent) = parent.filter(|&parent| image == 0 && self.process(parent).is_some()) else {
            return buffer.pending_bytes;
        };
        if let Some(inherited) = self.inherited(look, buffer) {
            return buffer.pending_bytes.saturating_sub(inherited);
        }
        let forked = self.forked_at(look.pid);
        let looked_at = |look: &Look| look.moment == SnapshotMoment::Fork && (look.at_s - forked).abs() < 0.5;
        if self.looks(parent).iter().any(looked_at) { buffer.pending_bytes } else { 0 }
    }

    /// How many of a forked child's pending bytes an ancestor had in the same stream.
    fn inherited(&self, look: &Look, buffer: &Buffer) -> Option<u64> {
        let mut current = look.pid;
        let mut most = None;
        for _ in 0..64 {
            let Some(parent) = self.process(current).and_then(|process| process.parent) else { break };
            let buffers = self.looks(parent).iter().flat_map(|look| look.buffers);
            let same = buffers.filter(|theirs| {
                theirs.address == buffer.address && same_beginning(&theirs.pending, &buffer.pending)
            });
            most = most.max(same.map(|theirs| theirs.pending_bytes).max());
            current = parent;
        }
        most
    }

    /// Whether a process wrote to a descriptor in this time, as far as was seen.
    pub fn wrote_between(&self, pid: u32, fd: i32, from_s: f64, to_s: f64) -> bool {
        let seen = self.calls_between(pid, from_s, to_s).iter().any(|seen| {
            let call = seen.call;
            call.fd == fd && call.op.writes() && call.result > 0
        });
        let flows = self.flows(pid).iter().filter(|flow| flow.fd == fd && flow.direction != Direction::In);
        seen || flows.into_iter().any(|flow| {
            let starts = flow.first_s > from_s && flow.first_s < to_s;
            let ends = flow.last_s > from_s && flow.last_s < to_s;
            flow.bytes > 0 && (starts || ends)
        })
    }

    /// Whether the last write that was seen on a descriptor failed.
    pub fn last_write_failed(&self, pid: u32, fd: i32) -> bool {
        let writes = |seen: &&Seen| seen.call.fd == fd && seen.call.op.writes();
        self.calls(pid).iter().rfind(writes).is_some_and(|seen| seen.call.result < 0)
    }

    /// Whether a child, which got a copy at the fork, wrote these bytes: a parent that goes into the background
    /// ends so.
    fn written_by_child(&self, pid: u32, buffer: &Buffer) -> bool {
        let children = self.recording.processes.iter().filter(|process| process.parent == Some(pid));
        let mut writes = children
            .flat_map(|child| self.calls(child.pid))
            .filter(|seen| seen.call.fd == buffer.fd && seen.call.op.writes() && seen.call.result > 0);
        writes.any(|seen| same_beginning(&seen.call.head, &buffer.pending))
    }

    /// Whether who was to read the bytes has killed who had them: it does not want them any more.
    fn killed_by_reader(&self, look: &Look, file: u32) -> bool {
        let target = self.target(file);
        let reads = |pid: u32| {
            let made = self.file(file).and_then(|file| file.opened_by) == Some(pid);
            made || self
                .flows(pid)
                .iter()
                .any(|flow| flow.direction == Direction::In && self.target(flow.file) == target)
        };
        let channel = matches!(self.kind(file), StreamKind::Pipe | StreamKind::Socket);
        channel
            && self.kills.iter().any(|&(at_s, by, whom)| whom == look.pid && at_s <= look.at_s && reads(by))
    }

    /// The finding for bytes that never left, unless nobody could miss them.
    pub fn lost(&self, lost: &Lost) -> Option<Finding> {
        let Lost { rule, look, buffer, how, topic } = lost;
        let bytes = self.own_pending(look, buffer);
        let file = self.file_at(look.pid, buffer.fd, look.at_s);
        let forgotten = file.is_some_and(|file| self.is_null(file));
        let kept = || self.written_by_child(look.pid, buffer);
        if bytes == 0 || forgotten || self.last_write_failed(look.pid, buffer.fd) || kept() {
            return None;
        }
        let unread =
            file.is_some_and(|file| self.reader_gone(file, look.at_s) || self.killed_by_reader(look, file));
        let severity = if unread { Severity::Info } else { Severity::High };
        let path = file.and_then(|file| self.file(file)).map_or("?", |file| &file.path);
        let skipped = (buffer.pending_bytes - bytes) as usize;
        let text = buffer.pending.get(skipped..).unwrap_or_default();
        let shown = if text.is_empty() { String::new() } else { format!(", beginning {}", preview(text)) };
        let why = format!(
            "{} for {path} {} still in the buffer of {} when {how}: {} lost{shown}.",
            count(bytes, "byte"),
            if bytes == 1 { "was" } else { "were" },
            self.name_at(look.pid, look.at_s),
            if bytes == 1 { "it is" } else { "they are" }
        );
        let code = self.code(look.pid, look.at_s, *topic);
        let fix = self.written_out("--rescue", (look.pid, look.at_s), buffer, &code);
        let draft = self.draft(rule, severity, look.pid, buffer.fd, file);
        let draft = draft.count("lost_bytes", bytes).count("buffer_bytes", buffer.buffer_bytes);
        let draft = draft.wrote(self.recording.write_site(look.pid, buffer.address, look.at_s));
        Some(draft.figure("at_s", look.at_s).say(why, fix))
    }

    /// The fix for bytes that wait in a process at a time: by `weir run`, where it can write them from outside, and in code.
    pub fn written_out(&self, options: &str, (pid, at_s): (u32, f64), buffer: &Buffer, code: &str) -> String {
        match buffer.is_listed() {
            true => format!("{}   or in code: {code}.", self.weir_run_at(options, pid, at_s)),
            false => format!("{code}."),
        }
    }

    /// Whether bytes can get lost in a thing of this kind at all.
    pub fn is_shared_input(&self, file: u32) -> bool {
        matches!(self.kind(file), StreamKind::File | StreamKind::Pipe | StreamKind::Socket)
    }
}
