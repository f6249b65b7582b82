//! Writes to the files of a stopped process, ahead of the program.

use weir_model::trace::RuntimeId;
use weir_sys::foreign_descriptors::forbidden;
use weir_sys::proc;
use weir_sys::ptrace::{EVENT_STOP, PtraceStop};
use weir_walkers::PendingBytes;

use super::tracee::TraceeState;
use super::tracees::Tracees;
use crate::foreign_file::{ForeignFile, ForeignFileError, TargetThread};

impl Tracees {
    /// Returns the threads of a process that [`Tracees::hold`] has stopped and that can make system calls for weir.
    fn threads_for_calls(&self, pid: u32) -> Vec<u32> {
        let process = self.processes.get(&pid);
        let can = |tid: &&u32| {
            let is_queued = self.deferred_stops.iter().any(|stop| stop.tid == **tid);
            let thread = self.threads.get(tid).filter(|thread| thread.stop_requested && !thread.exiting);
            thread.is_some_and(|thread| thread.state == TraceeState::Stopped) && !is_queued
        };
        process.into_iter().flat_map(|process| process.threads.iter().filter(can)).copied().collect()
    }

    /// Opens the file behind a descriptor of a thread of a stopped process, for a write ahead of the program. Notes a refusal
    /// as a limitation. Returns None then, if there is no such file, or if the program could notice the write.
    pub(crate) fn open_ahead(
        &mut self,
        pid: u32,
        thread: &TargetThread,
        stream: &PendingBytes,
    ) -> Option<ForeignFile> {
        // The streams that a search finds are those of types that only write.
        self.open_if(pid, thread, stream, stream.found_by_search)
    }

    /// As [`Tracees::open_ahead`] for bytes that are pending at a fork. A stream of glibc that reads too flushes them before it reads or
    /// moves its position; unless it has read ahead, the flush then moves nothing.
    pub(crate) fn open_at_fork(
        &mut self,
        pid: u32,
        thread: &TargetThread,
        stream: &PendingBytes,
    ) -> Option<ForeignFile> {
        let flushes_first = stream.walker == RuntimeId::GLIBC && stream.flush_position.is_none();
        self.open_if(pid, thread, stream, stream.found_by_search || flushes_first)
    }

    /// Opens the file of a stream, as [`ForeignFile::allows_writing_ahead`] with `only_writes`.
    fn open_if(
        &mut self,
        pid: u32,
        thread: &TargetThread,
        stream: &PendingBytes,
        only_writes: bool,
    ) -> Option<ForeignFile> {
        let fd = stream.fd;
        let file = ForeignFile::open(thread, fd, &self.threads_for_calls(pid))
            .map(|file| file.of_records(stream.outside.record_end, false));
        let why = match &file {
            Err(ForeignFileError::Refused(why)) => Some(why.clone()),
            // The descriptor itself may be closed meanwhile.
            Err(error @ ForeignFileError::Open(_)) if forbidden().is_some() => Some(error.to_string()),
            _ => None,
        };
        if let Some(why) = why {
            self.note_refusal(pid, thread.tid, fd, &why);
        }
        file.ok().filter(|file| file.allows_writing_ahead(only_writes))
    }

    /// As [`Tracees::open_ahead`], but returns None if each write to the file is one message, and notes that as a limitation.
    pub(crate) fn open_unless_messages(
        &mut self,
        pid: u32,
        thread: &TargetThread,
        stream: &PendingBytes,
    ) -> Option<ForeignFile> {
        let file = self.open_ahead(pid, thread, stream)?;
        if !file.keeps_messages() {
            return Some(file);
        }
        let why = "each write to it is one message, which would be divided";
        self.note_refusal(pid, thread.tid, stream.fd, why);
        None
    }

    /// Notes as a limitation that weir does not write the bytes for a descriptor of a process early.
    pub(crate) fn note_refusal(&mut self, pid: u32, tid: u32, fd: i32, why: &str) {
        let path = proc::descriptor(tid, fd).unwrap_or_default();
        self.add_limitation(format!(
            "{}: its bytes for {path} are not written early: {why}",
            proc::label(pid)
        ));
    }

    /// Writes as many bytes as a file takes now. Returns their number. An error is ignored: the program's own write meets
    /// it again.
    pub(crate) fn write_ahead(&mut self, pid: u32, file: &ForeignFile, bytes: &[u8]) -> usize {
        let outcome = file.write_available(bytes);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.foreign_writes += outcome.own_calls;
        }
        // A job control stop or the thread's death, during its own write.
        let is_requested = |stop: &PtraceStop| stop.status >> 8 == libc::SIGTRAP | EVENT_STOP << 8;
        self.deferred_stops.extend(outcome.stop.filter(|stop| !is_requested(stop)));
        self.written_ahead.total_bytes += outcome.written as u64;
        outcome.written
    }
}
