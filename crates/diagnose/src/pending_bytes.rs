//! Pending bytes in user-space buffers: which process they belong to, and whether they were ever written.

use weir_model::trace::{Buffer, Exit, RuntimeId, SnapshotMoment};
use weir_model::{Direction, Finding, Severity, StreamKind};

use crate::code_fix::CodeFix;
use crate::compressed::format_of;
use crate::context::{BufferSnapshot, RuleContext, TimedCall, same_prefix};
use crate::flags::EFBIG;
use crate::inherited_bytes::CopiesAtFork;
use crate::rule::Rule;
use crate::run_advice::RunOption;
use crate::text::{count, preview};

/// The most seconds between a fork and the snapshot that was taken at it.
const FORK_SNAPSHOT_S: f64 = 0.5;

const EINTR: i64 = 4;
const SIGXFSZ: i32 = 25;
/// The first of the kernel's own error numbers for calls that it restarts after a signal, if the process survives it.
const ERESTARTSYS: i64 = 512;

/// Bytes that were pending when a process or its image ended.
pub(crate) struct LostBytes<'a> {
    pub rule: &'static Rule,
    pub snapshot: BufferSnapshot<'a>,
    pub buffer: &'a Buffer,
    /// The end as a clause: "SIGKILL ended it", "it called _exit(2)".
    pub how: String,
    /// The change to the program that avoids the loss.
    pub fix: CodeFix,
}

impl<'a> RuleContext<'a> {
    /// Returns the number of pending bytes in a buffer that the process itself wrote, without those that it inherited at its
    /// fork. Returns 0 if there is no snapshot of the parent at the fork, because then the inherited bytes are unknown.
    pub fn own_pending_bytes(&self, snapshot: &BufferSnapshot, buffer: &Buffer) -> u64 {
        if buffer.fd < 0 || buffer.pending_bytes == 0 {
            return 0;
        }
        let image = self.image_at(snapshot.pid, snapshot.at_s).map_or(0, |(index, _)| index);
        let parent = self.process(snapshot.pid).and_then(|process| process.parent);
        let Some(parent) = parent.filter(|&parent| image == 0 && self.process(parent).is_some()) else {
            return buffer.pending_bytes;
        };
        if let Some(inherited) = self.inherited_bytes(snapshot, buffer) {
            return buffer.pending_bytes.saturating_sub(inherited);
        }
        let forked_s = self.forked_at(snapshot.pid);
        let at_fork = |snapshot: &BufferSnapshot| {
            snapshot.moment == SnapshotMoment::Fork && (snapshot.at_s - forked_s).abs() < FORK_SNAPSHOT_S
        };
        if self.snapshots(parent).iter().any(at_fork) { buffer.pending_bytes } else { 0 }
    }

    /// Returns how many of a process's pending bytes an ancestor had in the same buffer, or None if none had any.
    fn inherited_bytes(&self, snapshot: &BufferSnapshot, buffer: &Buffer) -> Option<u64> {
        let mut current = snapshot.pid;
        let mut most = None;
        for _ in 0..64 {
            let Some(parent) = self.process(current).and_then(|process| process.parent) else { break };
            let buffers = self.snapshots(parent).iter().flat_map(|snapshot| snapshot.buffers);
            let same = buffers.filter(|other| {
                other.address == buffer.address && same_prefix(&other.pending, &buffer.pending)
            });
            most = most.max(same.map(|other| other.pending_bytes).max());
            current = parent;
        }
        most
    }

    /// Returns whether the recording shows a write of a process to a descriptor between two times.
    pub fn wrote_between(&self, pid: u32, fd: i32, from_s: f64, to_s: f64) -> bool {
        let by_call = self.calls_between(pid, from_s, to_s).iter().any(|timed| {
            let call = timed.call;
            call.fd == fd && call.op.writes() && call.result > 0
        });
        let mut streams = self.streams_of(pid).iter();
        by_call
            || streams.any(|stream| {
                let writes = stream.fd == fd && stream.direction != Direction::In && stream.bytes > 0;
                let starts = stream.first_s > from_s && stream.first_s < to_s;
                let ends = stream.last_s > from_s && stream.last_s < to_s;
                writes && (starts || ends)
            })
    }

    /// Returns whether the last recorded write to a descriptor failed. A write that a signal interrupted has not: the signal
    /// may be the one that ends the process, or its thread.
    pub fn last_write_failed(&self, pid: u32, fd: i32) -> bool {
        // This failure ends the process: it can do nothing about it.
        let by_limit = self.process(pid).is_some_and(|process| process.exit == Some(Exit::Signal(SIGXFSZ)));
        let is_write = |timed: &&TimedCall| {
            let call = timed.call;
            let is_interrupted = call.result == -EINTR || call.result <= -ERESTARTSYS;
            call.fd == fd && call.op.writes() && !is_interrupted && !(by_limit && call.result == -EFBIG)
        };
        self.calls(pid).iter().rfind(is_write).is_some_and(|timed| timed.call.result < 0)
    }

    /// Returns whether the process that reads a pipe or socket killed the writer, so that it does not need the bytes.
    fn killed_by_reader(&self, snapshot: &BufferSnapshot, file: u32) -> bool {
        if !matches!(self.kind(file), StreamKind::Pipe | StreamKind::Socket) {
            return false;
        }
        let key = self.target_key(file);
        let reads = |pid: u32| {
            let created = self.file(file).and_then(|file| file.opened_by) == Some(pid);
            let mut inputs = self.streams_of(pid).iter().filter(|stream| stream.direction == Direction::In);
            created || inputs.any(|stream| self.target_key(stream.file) == key)
        };
        let exit = self.process(snapshot.pid).and_then(|process| process.exit);
        self.signals_sent.iter().any(|signal| {
            let ends = match exit {
                Some(Exit::Signal(number)) => number == signal.number,
                // A handler has ended the process. A group can have programs without one.
                _ => signal.receiver.is_some(),
            };
            let may_receive = signal.receiver.is_none_or(|receiver| receiver == snapshot.pid);
            ends && may_receive && signal.at_s <= snapshot.at_s && reads(signal.sender)
        })
    }

    /// Returns the finding for bytes that were never written, or None if no process misses them.
    pub fn lost_finding(&self, lost: &LostBytes) -> Option<Finding> {
        let LostBytes { rule, snapshot, buffer, how, fix } = lost;
        let (pid, at_s) = (snapshot.pid, snapshot.at_s);
        if buffer.fd < 0 || buffer.pending_bytes == 0 {
            return None;
        }
        let copies = self.copies_at_fork(snapshot, buffer);
        let bytes = buffer.pending_bytes.saturating_sub(copies.saved);
        let file = self.file_at(pid, buffer.fd, at_s);
        let discarded = file.is_some_and(|file| self.is_null(file) || self.is_private(file, at_s));
        if bytes == 0 || discarded || self.last_write_failed(pid, buffer.fd) {
            return None;
        }
        let unread =
            file.is_some_and(|file| self.readers_exited(file, at_s) || self.killed_by_reader(snapshot, file));
        let severity = if unread { Severity::Info } else { Severity::High };
        let format = self.compressed_format(buffer, file);
        let code = match format {
            Some(_) => {
                "close the compressed file before the end: a flush can leave bytes in the compressor".into()
            }
            None => self.code_for_loss((pid, at_s), (buffer, file), *fix, copies),
        };
        let finding = self.finding(rule, severity, pid, buffer.fd, file);
        let finding = finding.count("lost_bytes", bytes).count("buffer_bytes", buffer.buffer_bytes);
        let finding = finding.figure("at_s", at_s);
        let finding = finding.call_site(self.recording.write_site(pid, buffer.address, at_s));
        let command = match snapshot.moment {
            // The library flushes stdio before execve(2); other runtimes' buffers are gone when the supervisor notices it.
            SnapshotMoment::Exec => (matches!(buffer.walker, RuntimeId::GLIBC | RuntimeId::MUSL))
                .then(|| self.drain_command(RunOption::RescueAtExec, (pid, at_s), buffer))
                .flatten(),
            _ => self.drain_command(RunOption::Rescue, (pid, at_s), buffer),
        };
        let mut why = self.loss_sentence(snapshot, buffer, bytes, how);
        if let Some(format) = format {
            why += &format!(
                " They are {format} data: the compressor may have more bytes, which weir cannot read."
            );
        }
        if buffer.unconverted_bytes > 0 {
            why += &format!(
                " At least {} of them, counted in UTF-8, {} not converted to the encoding of the file yet.",
                count(buffer.unconverted_bytes, "byte"),
                if buffer.unconverted_bytes == 1 { "was" } else { "were" }
            );
        }
        // Without the compressor's bytes, nothing can read what is rescued.
        Some(finding.build_with_command(why, command.filter(|_| format.is_none()), code))
    }

    /// Returns the code that avoids a loss. If other processes have copies of the bytes, a flush alone would write them twice.
    fn code_for_loss(
        &self,
        (pid, at_s): (u32, f64),
        (buffer, file): (&Buffer, Option<u32>),
        fix: CodeFix,
        copies: CopiesAtFork,
    ) -> String {
        let code = |fix: CodeFix| match fix {
            CodeFix::Flush => self.flush_fix(pid, at_s, file, buffer).to_string(),
            fix => self.code_fix(pid, at_s, (buffer.fd, file), fix).to_string(),
        };
        if copies.copied == 0 || fix == CodeFix::FlushBeforeFork {
            return code(fix);
        }
        let first = code(CodeFix::FlushBeforeFork);
        format!("{first}, so that nothing is written twice; and {}", code(fix))
    }

    /// Returns the format of compressed data, if pending bytes or the first bytes written to their file begin so.
    fn compressed_format(&self, buffer: &Buffer, file: Option<u32>) -> Option<&'static str> {
        let mut calls = file.map(|file| self.calls_on(file)).unwrap_or_default().iter();
        let mut first_write = || calls.find(|timed| timed.call.op.writes() && timed.call.result > 0);
        format_of(&buffer.pending).or_else(|| format_of(&first_write()?.call.head))
    }

    fn loss_sentence(&self, snapshot: &BufferSnapshot, buffer: &Buffer, bytes: u64, how: &str) -> String {
        let file = self.file_at(snapshot.pid, buffer.fd, snapshot.at_s);
        let path = file.and_then(|file| self.file(file)).map_or("?".into(), |file| file.path.to_string());
        let inherited = (buffer.pending_bytes - bytes) as usize;
        let text = buffer.pending.get(inherited..).unwrap_or_default();
        let shown = if text.is_empty() { String::new() } else { format!(", beginning {}", preview(text)) };
        format!(
            "{} for {path} {} still in {} when {how}: {} lost{shown}.",
            count(bytes, "byte"),
            if bytes == 1 { "was" } else { "were" },
            self.buffer_name(buffer, snapshot.pid, snapshot.at_s),
            if bytes == 1 { "it is" } else { "they are" }
        )
    }

    /// Returns the `weir run` command for pending bytes, or None if weir cannot write bytes of this buffer from outside.
    pub fn drain_command(
        &self,
        option: RunOption,
        (pid, at_s): (u32, f64),
        buffer: &Buffer,
    ) -> Option<String> {
        let can_be_written =
            buffer.unconverted_bytes == 0 && (!buffer.found_by_search || buffer.has_write_address);
        can_be_written.then(|| self.weir_run(option, pid, at_s))?
    }

    /// Returns whether processes can share the input position or contents of an open file of this kind.
    pub fn is_shareable_input(&self, file: u32) -> bool {
        matches!(self.kind(file), StreamKind::File | StreamKind::Pipe | StreamKind::Socket)
    }
}
