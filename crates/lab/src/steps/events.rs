//! Makes steps from the system calls of a recording.

use weir_model::lab::step::{ByteTransfer, StepStream};
use weir_model::trace::{Call, EventKind, Op};
use weir_model::{Mode, Untrusted};

use super::step_recorder::StepRecorder;
use super::{sentences, streams};

impl StepRecorder<'_> {
    /// Applies a call to the buffers and files; adds a step if the call belongs to the program.
    pub(super) fn call(&mut self, at: usize, pid: u32, call: &Call) {
        let shown = self.process(pid).is_some();
        if call.result < 0 {
            if shown && self.is_transfer(call) {
                self.step(pid, sentences::failed(pid, call, &self.name(call)), String::new(), None);
            }
            return;
        }
        match call.op {
            op if op.writes() => self.write(at, pid, call),
            op if op.reads() => self.read(pid, call),
            Op::Open | Op::Openat | Op::Openat2 | Op::Creat => self.open(pid, call),
            Op::Lseek => self.seek(pid, call),
            Op::Ftruncate => self.files.truncate(call.file, call.args[1]),
            Op::Fsync | Op::Fdatasync | Op::SyncFileRange => self.sync(pid, call),
            Op::Pipe | Op::Pipe2 if shown => {
                self.step(pid, format!("{pid} creates a pipe."), String::new(), None)
            }
            Op::Rename | Op::Renameat | Op::Renameat2 | Op::Unlink | Op::Unlinkat | Op::Kill if shown => {
                let text = format!("{pid} calls {}({}).", call.op.name(), Untrusted::join(&call.paths, ", "));
                self.step(pid, text, String::new(), None);
            }
            _ => {}
        }
    }

    /// Returns whether the call moves or syncs bytes of a shown file.
    fn is_transfer(&self, call: &Call) -> bool {
        self.files.at(call.file).is_some() && (call.op.writes() || call.op.reads() || call.op.syncs())
    }

    fn name(&self, call: &Call) -> String {
        let file = call.file.and_then(|id| self.recording.file(id));
        file.map_or_else(|| format!("fd {}", call.fd), sentences::name)
    }

    fn write(&mut self, at: usize, pid: u32, call: &Call) {
        let from = self.process(pid).and_then(|process| streams::wrote(process, call));
        // A buffer snapshot can have more of the bytes than the call.
        let longer =
            from.as_ref().map(|stream| &stream.pending.head).filter(|head| head.len() > call.head.len());
        let head = longer.unwrap_or(&call.head);
        let known = head.len().min(call.result as usize);
        self.files.write(call, &head[..known]);
        let (Some(file), true) = (self.files.at(call.file), self.process(pid).is_some()) else { return };
        let moved = ByteTransfer { pid, file, bytes: call.result as u64 };
        let (text, note) = match &from {
            Some(stream) => {
                let shared = stream.shared.min(call.result as u64);
                let twice =
                    if shared > 0 { sentences::inherited(shared, call.result as u64) } else { String::new() };
                let reason = self.flush_reason(at, pid, stream, call) + &twice;
                (sentences::flushes(pid, call, &self.name(call)), reason)
            }
            None => (
                sentences::writes(pid, call, &self.name(call)),
                "Without a user-space buffer: the bytes are in the kernel now.".into(),
            ),
        };
        self.step(pid, text, note, Some(moved));
    }

    /// Returns why the program flushes its buffer at this call.
    fn flush_reason(&self, at: usize, pid: u32, stream: &StepStream, call: &Call) -> String {
        let bytes = call.result as u64;
        if stream.mode == Some(Mode::Line) && call.tail == Some(b'\n') {
            "The stream is line buffered: a newline flushes it.".into()
        } else if stream.buffer_bytes > 1 && bytes >= stream.buffer_bytes {
            format!("The buffer was full: {} bytes.", stream.buffer_bytes)
        } else if self.ends_next(at, pid) {
            "The process ends: exit flushes its buffers.".into()
        } else {
            "A call flushed it: fflush, fclose, or a read from a terminal.".into()
        }
    }

    /// Returns whether the process only closes descriptors from here to its end.
    fn ends_next(&self, at: usize, pid: u32) -> bool {
        let next = self.recording.events[at + 1..].iter().filter(|event| event.pid == pid);
        let mut left = next.filter(|event| match &event.kind {
            EventKind::Buffers { .. } => false,
            EventKind::Call(call) => !(call.op.writes() || matches!(call.op, Op::Lseek | Op::Close)),
            _ => true,
        });
        left.next().is_some_and(|event| matches!(event.kind, EventKind::Exit(_)))
    }

    fn read(&mut self, pid: u32, call: &Call) {
        self.files.read(call);
        if self.files.at(call.file).is_some() && self.process(pid).is_some() {
            self.step(pid, sentences::reads(pid, call, &self.name(call)), String::new(), None);
        }
    }

    fn open(&mut self, pid: u32, call: &Call) {
        let opened = call.file.or_else(|| {
            self.recording.files.iter().rev().find_map(|file| {
                (file.opened_by == Some(pid)
                    && call.paths.iter().any(|path| file.path.exact().ends_with(path.exact())))
                .then_some(file.id)
            })
        });
        let flags = match call.op {
            Op::Open => call.args[1] as i32,
            Op::Openat => call.args[2] as i32,
            _ => 0, // openat2(2) has a pointer to its flags, which are unknown
        };
        let empties = flags & sentences::O_TRUNC != 0 || call.op == Op::Creat;
        if empties {
            self.files.truncate(opened, 0);
        }
        if self.files.at(opened).is_some() && self.process(pid).is_some() {
            let note = if empties { "The call truncates the file to 0 bytes." } else { "" };
            let name =
                call.paths.first().map_or("?".into(), |path| sentences::base(&path.to_string()).to_string());
            self.step(pid, format!("{pid} opens {name} as descriptor {}.", call.result), note.into(), None);
        }
    }

    fn seek(&mut self, pid: u32, call: &Call) {
        self.files.seek(call);
        if self.files.at(call.file).is_some() && self.process(pid).is_some() {
            let text =
                format!("{pid} calls lseek: the offset of {} is {} now.", self.name(call), call.result);
            let note = "The offset belongs to the open file, which parent and child share.";
            self.step(pid, text, note.into(), None);
        }
    }

    fn sync(&mut self, pid: u32, call: &Call) {
        self.files.sync(call.file);
        if self.files.at(call.file).is_some() && self.process(pid).is_some() {
            let text = format!(
                "{pid} calls {}: the kernel writes {} to the device.",
                call.op.name(),
                self.name(call)
            );
            self.step(pid, text, "The call returns when the device has the bytes.".into(), None);
        }
    }
}
