//! The losses of a killed process that a rescue cannot prevent: bytes for files that it may have kept in buffers which no walker
//! reads, and the records of a log that it kept as objects.

use weir_model::trace::Exit;
use weir_sys::proc;

use crate::supervise::Tracees;

/// Reports the files of a process in its exit stop as a limitation if a signal ends it. At a SIGPIPE no reader misses the bytes. What
/// Node queues for a full pipe is lost at any end.
pub(super) fn report(tracees: &mut Tracees, pid: u32, tid: u32, status: i32) {
    if let Some(sentence) = weir_walkers::queued_at_exit((pid, tid)) {
        tracees.add_limitation(sentence);
    }
    if !matches!(Exit::of_status(status), Exit::Signal(number) if number != libc::SIGPIPE) {
        return;
    }
    if let Some(sentence) = tracees.unseen_at_kill(pid, tid) {
        tracees.add_limitation(sentence);
    }
    if let Some(records) = tracees.kept_records(pid, tid) {
        tracees.add_limitation(format!("{} kept {records}: weir cannot write them", proc::label(pid)));
    }
}
