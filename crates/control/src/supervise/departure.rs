//! The time after the command's end in which weir stays for descendants: for those that have not written the bytes that weir wrote ahead
//! of them, which they would write a second time without their tracer, and for the rescue of those that have ended.

use weir_sys::clock::now_ns;
use weir_sys::{hang_guard, proc, signals};

use super::event_loop::Supervisor;

/// How long weir stays before it says so: longer than the pauses of most programs.
const SILENT_NS: u64 = 1_000_000_000;

/// The time in which a signal also ends the descendants that got it: a little longer than one attempt to reclaim bytes.
const SIGNAL_NS: u64 = 100_000_000;

/// The number of signals after the command's end that end weir, whatever is written ahead.
const SIGNALS_TO_LEAVE: u32 = 2;

/// The stay after the command's end.
pub(super) struct Departure {
    begun_ns: u64,
    /// The signals that asked weir to end before.
    requests: u32,
    /// When the first signal after the command's end was seen.
    asked_ns: Option<u64>,
    is_said: bool,
    has_left: bool,
}

impl Departure {
    fn new() -> Departure {
        let requests = signals::end_requests().0;
        Departure { begun_ns: now_ns(), requests, asked_ns: None, is_said: false, has_left: false }
    }

    /// Returns the number of signals since the begin that asked weir to end.
    fn new_requests(&self) -> u32 {
        signals::end_requests().0 - self.requests
    }

    /// Returns whether it is time to say why weir stays. True only once.
    fn is_time_to_say(&mut self) -> bool {
        let now = now_ns();
        if self.new_requests() > 0 {
            self.asked_ns.get_or_insert(now);
        }
        let is_due =
            now >= self.begun_ns + SILENT_NS || self.asked_ns.is_some_and(|asked| now >= asked + SIGNAL_NS);
        is_due && !std::mem::replace(&mut self.is_said, true)
    }
}

impl Supervisor {
    /// Returns whether weir stays after the command's end, because bytes are written ahead of descendants. Says so after a while. The
    /// second signal ends the stay: the descendants then write the bytes again.
    pub(super) fn stays_for_bytes(&mut self) -> bool {
        let departure = self.departure.get_or_insert_with(Departure::new);
        let has_skipped_call = self.tracees.threads.values().any(|thread| thread.skipped_call.is_some());
        // At the exit of a partly skipped call its result is corrected: the program would write a part again.
        if self.tracees.written_ahead.is_empty() && !has_skipped_call || departure.has_left {
            return false;
        }
        let owners = self.tracees.written_ahead.owners();
        if departure.new_requests() >= SIGNALS_TO_LEAVE {
            departure.has_left = true;
            for pid in owners {
                let sentence = self.doubled_sentence(pid);
                self.tracees.add_limitation(sentence);
            }
            return false;
        }
        if departure.is_time_to_say() {
            owners.into_iter().for_each(|pid| hang_guard::report(&self.stay_sentence(pid)));
        }
        true
    }

    /// Returns whether a process is held at its end, for example until the reader of a full pipe makes room for its pending bytes. Its
    /// parent may have ended: `timeout -s KILL` kills itself, too. A rescue ends by itself when the reader makes no room for some
    /// seconds. Says so after a while. After the second signal no rescue waits for a reader any more.
    pub(super) fn stays_for_exits(&mut self) -> bool {
        if self.deferred_exits.is_empty() {
            return false;
        }
        let departure = self.departure.get_or_insert_with(Departure::new);
        self.tracees.saves_at_once = departure.new_requests() >= SIGNALS_TO_LEAVE;
        if departure.is_time_to_say() {
            let labels = self.deferred_exits.iter().map(|exit| proc::label(exit.pid));
            labels.for_each(|label| hang_guard::report(&slow_reader_sentence(&label)));
        }
        true
    }

    fn bytes_ahead(&self, pid: u32) -> usize {
        self.tracees.written_ahead.streams(pid).map(|one| one.bytes.len()).sum()
    }

    fn stay_sentence(&self, pid: u32) -> String {
        format!(
            "{} runs on after the command, and {} of its pending bytes are written early: weir stays until the program writes \
             them, so that they are not written twice; the second Ctrl-C or SIGTERM ends weir",
            proc::label(pid),
            self.bytes_ahead(pid)
        )
    }

    fn doubled_sentence(&self, pid: u32) -> String {
        let (label, bytes) = (proc::label(pid), self.bytes_ahead(pid));
        format!(
            "{label}: {bytes} bytes that were written early will be written twice, because a signal has ended weir"
        )
    }
}

fn slow_reader_sentence(label: &str) -> String {
    format!(
        "{label} has ended, and the reader of its output is slow: weir stays until its pending bytes are written; the second \
         Ctrl-C or SIGTERM saves the rest of them in a file"
    )
}
