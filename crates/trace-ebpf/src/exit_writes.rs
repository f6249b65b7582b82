//! The last writes of threads that have exited while their process still ends.

use std::collections::HashMap;

use weir_model::trace::{Buffer, SnapshotMoment};
use weir_sys::proc;
use weir_sys::ptrace::last_write::LastWrite;
use weir_trace_api::remove_written;

/// The last writes of exited threads, by process.
#[derive(Debug, Default)]
pub(super) struct ExitWrites(HashMap<u32, Vec<LastWrite>>);

impl ExitWrites {
    /// Notes the last writes of a thread in its exit stop.
    pub fn note(&mut self, tid: u32) {
        let process = proc::process_of(tid).unwrap_or(tid);
        self.0.entry(process).or_default().extend(LastWrite::all_of_thread(tid));
    }

    /// Removes from a snapshot at the end of a process the bytes that its exited threads wrote last, and forgets the process. The
    /// memory is read through the thread `tid`.
    pub fn remove_from(&mut self, moment: SnapshotMoment, pid: u32, tid: u32, buffers: &mut [Buffer]) {
        if matches!(moment, SnapshotMoment::Exit | SnapshotMoment::Signal) {
            remove_written(tid, &self.0.remove(&pid).unwrap_or_default(), buffers);
        }
    }

    /// Forgets a process that has a new image or has ended.
    pub fn forget(&mut self, pid: u32) {
        self.0.remove(&pid);
    }
}
