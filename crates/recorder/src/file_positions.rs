//! Tracks the position of each open file, so that a call's event has the offset at which it read or wrote. A
//! backend that sees only arguments and results (ptrace) lacks the position: it is read once from
//! /proc/PID/fdinfo and then advanced call by call until a gap. All users of an open file share its position.

use foldhash::HashMap;
use weir_model::trace::{Op, OpenFile};
use weir_sys::open_files::fdinfo;
use weir_sys::syscalls;
use weir_trace_api::RawCall;

use crate::{Recorder, fd_table};

/// Positions in bytes, by file id.
#[derive(Debug, Default)]
pub(super) struct FilePositions(HashMap<u32, u64>);

impl FilePositions {
    pub fn set(&mut self, file: u32, position: u64) {
        self.0.insert(file, position);
    }

    pub fn forget(&mut self, file: u32) {
        self.0.remove(&file);
    }

    /// Advances the position by a call's bytes. Returns the position before the call; `now` reads the current
    /// one if it is unknown.
    fn advance(&mut self, file: u32, bytes: u64, now: impl FnOnce() -> Option<u64>) -> Option<u64> {
        let before = match self.0.get(&file) {
            Some(&before) => before,
            None => now()?.checked_sub(bytes)?,
        };
        self.set(file, before.saturating_add(bytes));
        Some(before)
    }
}

impl Recorder {
    /// Sets the position at which a call read or wrote, unless the backend did.
    pub(super) fn fill_position(&mut self, pid: u32, call: &mut RawCall) {
        let transfers = call.op.reads() || call.op.writes() || call.op.copies();
        if self.files.kernel_reports_files || call.result <= 0 || !transfers {
            return;
        }
        if call.op.copies() {
            // A copying call uses the files' positions or its own offsets.
            for (fd, _) in fd_table::transfer_fds(call, pid).collect::<Vec<_>>() {
                let file = self.file_of(pid, fd);
                self.positions.forget(file);
            }
        } else if call.op.offset_argument(&call.args).is_none() {
            let fd = syscalls::descriptor(call.op, &call.args).unwrap_or(-1);
            let file = self.file_of(pid, fd);
            if self.files.is_regular(file) {
                let now = || Some(fdinfo(pid, fd)?.position);
                call.position = self.positions.advance(file, call.result as u64, now);
            }
        }
    }

    /// Applies lseek(2) and open(2) to the position.
    pub(super) fn track_position(&mut self, file: u32, call: &RawCall) {
        let appends = || self.files.all.get(file as usize).is_some_and(OpenFile::appends);
        match call.op {
            // O_APPEND writes at the end of the file, whatever the position is.
            op if (op == Op::Lseek || op.opens()) && (self.files.kernel_reports_files || appends()) => {
                self.positions.forget(file);
            }
            Op::Lseek => self.positions.set(file, call.result as u64),
            op if op.opens() => self.positions.set(file, 0),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_once_and_then_advanced() {
        let mut positions = FilePositions::default();
        let unused = || panic!("the position is known");
        assert_eq!(positions.advance(7, 10, || Some(110)), Some(100));
        assert_eq!(positions.advance(7, 5, unused), Some(110));
        positions.set(7, 0);
        assert_eq!(positions.advance(7, 5, unused), Some(0));
        positions.forget(7);
        assert_eq!(positions.advance(7, 5, || Some(3)), None, "another process has moved the position");
        assert_eq!(positions.advance(7, 5, || None), None);
        assert_eq!(positions.advance(7, 5, || Some(20)), Some(15));
    }
}
