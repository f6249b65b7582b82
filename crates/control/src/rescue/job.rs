//! The write of the bytes of one stream of a dead process.

use weir_model::run::RescuedBytes;
use weir_model::trace::Exit;
use weir_sys::clock::now_ns;
use weir_sys::proc;
use weir_walkers::FlushPosition;

use super::{UnwrittenStream, save};
use crate::foreign_file::{ForeignFile, ForeignFileError, TargetThread, WriteOutcome};
use crate::supervise::Tracees;

/// The time without progress after which a full pipe or terminal is given up and its bytes are saved.
const WRITE_TIMEOUT_NS: u64 = 5_000_000_000;

/// The write of one stream's bytes.
pub(super) struct RescueJob {
    pub rescued: RescuedBytes,
    file: Result<ForeignFile, ForeignFileError>,
    /// Where the first byte goes, until it is written.
    position: Option<FlushPosition>,
    /// The owner of the bytes if the file does not take them.
    owner: Option<save::Owner>,
    bytes: Vec<u8>,
    written: usize,
    last_progress_ns: u64,
}

impl RescueJob {
    /// Makes a job; None if there are no bytes, or the program has closed the descriptor.
    pub fn new(
        pid: u32,
        thread: &TargetThread,
        status: i32,
        unwritten: UnwrittenStream,
    ) -> Option<RescueJob> {
        let UnwrittenStream { fd, bytes, is_unsure, position, outside, .. } = unwritten;
        let tid = thread.tid;
        let target = proc::descriptor(tid, fd).filter(|_| !bytes.is_empty())?;
        let rescued = RescuedBytes {
            pid,
            comm: proc::comm(pid),
            fd,
            path: target,
            bytes: bytes.len() as u64,
            exit: Exit::of_status(status),
            saved: None,
        };
        // A thread in its exit stop makes no calls any more.
        let refusal = outside.refusal.or(is_unsure.then_some("the program may have written them already"));
        let file = match refusal {
            Some(why) => Err(ForeignFileError::Refused(why.into())),
            None => ForeignFile::open(thread, fd, &[]).map(|file| file.of_records(outside.record_end, true)),
        };
        let owner = save::owner_of(tid);
        Some(RescueJob { rescued, file, position, owner, bytes, written: 0, last_progress_ns: now_ns() })
    }

    /// Writes or saves bytes. Returns whether the job is finished.
    pub fn advance(&mut self, tracees: &mut Tracees) -> bool {
        if let (Some(position), Ok(file)) = (self.position.take(), &self.file)
            && let Err(error) = file.move_to(&position)
        {
            self.file = Err(error);
        }
        let why = match &self.file {
            Ok(file) => {
                let WriteOutcome { written, error, .. } = file.write_available(&self.bytes[self.written..]);
                self.written += written;
                if written > 0 {
                    self.last_progress_ns = now_ns();
                }
                match error {
                    None if self.written == self.bytes.len() => return true,
                    None if tracees.saves_at_once => {
                        "a signal has ended weir before it took them".to_string()
                    }
                    None if now_ns() < self.last_progress_ns + WRITE_TIMEOUT_NS => return false,
                    None => "it took no bytes for 5 s".to_string(),
                    Some(error) if save::has_no_reader(self.rescued.exit, &error) => {
                        self.rescued.bytes = self.written as u64;
                        return true;
                    }
                    Some(error) => weir_sys::error::errno_text(&error),
                }
            }
            Err(error) => error.to_string(),
        };
        save::save_or_report(tracees, &mut self.rescued, self.owner, &self.bytes[self.written..], why);
        true
    }
}
