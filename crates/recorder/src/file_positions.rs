//! Where open files stand, by their calls: an engine that only sees what a call is given and returns is told by
//! /proc/PID/fdinfo once, and counts from there until a pause. It is one place for all who share the open file.

use foldhash::HashMap;
use weir_model::trace::Op;
use weir_sys::open_files::fdinfo;
use weir_sys::syscalls;
use weir_trace_api::RawCall;

use crate::{Recorder, fd_table};

/// By open file.
#[derive(Debug, Default)]
pub(super) struct FilePositions(HashMap<u32, u64>);

impl FilePositions {
    /// It stands there now.
    pub fn set(&mut self, file: u32, position: u64) {
        self.0.insert(file, position);
    }

    /// Nobody knows any more where it stands.
    pub fn forget(&mut self, file: u32) {
        self.0.remove(&file);
    }

    /// Where it stood before a call that has moved it on by so much; `now` tells where it stands.
    fn moved(&mut self, file: u32, bytes: u64, now: impl FnOnce() -> Option<u64>) -> Option<u64> {
        let from = match self.0.get(&file) {
            Some(&from) => from,
            None => now()?.checked_sub(bytes)?,
        };
        self.set(file, from + bytes);
        Some(from)
    }
}

impl Recorder {
    /// Says of a call where the file stood before it, if the engine does not.
    pub(super) fn place(&mut self, pid: u32, call: &mut RawCall) {
        let moves = call.op.reads() || call.op.writes() || call.op.copies();
        if self.files.told_by_kernel || call.result <= 0 || !moves {
            return;
        }
        if call.op.copies() {
            // Their offsets may be the files' or their own.
            for (fd, _) in fd_table::sides(call).collect::<Vec<_>>() {
                let file = self.file_of(pid, fd);
                self.positions.forget(file);
            }
        } else if syscalls::offset(call.op, &call.args).is_none() {
            let fd = syscalls::descriptor(call.op, &call.args).unwrap_or(-1);
            let file = self.file_of(pid, fd);
            if self.files.is_regular(file) {
                let now = || Some(fdinfo(pid, fd)?.position);
                call.position = self.positions.moved(file, call.result as u64, now);
            }
        }
    }

    /// What a call that moves no bytes does to it.
    pub(super) fn replace(&mut self, file: u32, call: &RawCall) {
        let appends = || self.files.all.get(file as usize).is_some_and(|it| it.flags & libc::O_APPEND != 0);
        match call.op {
            // What is appended goes to the end, wherever the file was sought to.
            op if (op == Op::Lseek || op.opens()) && (self.files.told_by_kernel || appends()) => {
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
    fn it_is_asked_for_once_and_followed_from_there() {
        let mut positions = FilePositions::default();
        let never = || panic!("it is known");
        assert_eq!(positions.moved(7, 10, || Some(110)), Some(100));
        assert_eq!(positions.moved(7, 5, never), Some(110));
        positions.set(7, 0);
        assert_eq!(positions.moved(7, 5, never), Some(0));
        positions.forget(7);
        assert_eq!(positions.moved(7, 5, || Some(3)), None, "somebody else has sought it meanwhile");
        assert_eq!(positions.moved(7, 5, || None), None);
        assert_eq!(positions.moved(7, 5, || Some(20)), Some(15));
    }
}
