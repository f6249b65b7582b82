//! The bytes that a dead process would have converted to another encoding before it wrote them. Unconverted bytes would be wrong in
//! the file of the stream, so they are saved in a file of their own.

use weir_model::run::RescuedBytes;
use weir_model::trace::Exit;
use weir_sys::proc;

use super::save;
use crate::supervise::Tracees;

const WHY: &str = "the program had not converted them to the encoding of the file; the saved bytes are UTF-8";

/// Saves the unconverted bytes of a process in its exit stop.
pub(super) fn save(tracees: &mut Tracees, pid: u32, tid: u32, status: i32) {
    for one in tracees.unconverted(pid, tid) {
        let inherited = tracees.inherited_unconverted_len(pid, &one);
        let bytes = &one.bytes[inherited..];
        // A descriptor that is closed takes no bytes of a living process either.
        let Some(path) = proc::descriptor(tid, one.fd).filter(|_| !bytes.is_empty()) else { continue };
        let mut rescued = RescuedBytes {
            pid,
            comm: proc::comm(pid),
            fd: one.fd,
            path,
            bytes: bytes.len() as u64,
            exit: Exit::of_status(status),
            saved: None,
        };
        save::save_or_report(tracees, &mut rescued, save::owner_of(tid), bytes, WHY.into());
        tracees.add_rescued(rescued);
    }
}
