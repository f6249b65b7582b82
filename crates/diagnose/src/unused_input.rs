//! Whole lines of input in a buffer that the program uses only when it is full.

use weir_model::trace::{Buffer, Exit, SnapshotMoment};

use crate::context::{BufferSnapshot, RuleContext, same_prefix};

/// The buffer from the first snapshot with its oldest line to the last one.
pub(crate) struct UnusedInput<'a> {
    pub first: BufferSnapshot<'a>,
    pub last: BufferSnapshot<'a>,
    /// The unread bytes at the first snapshot. Those that came later are younger.
    pub oldest_bytes: u64,
    /// The buffer at the last snapshot.
    pub buffer: &'a Buffer,
}

impl<'a> UnusedInput<'a> {
    /// Returns the longest such time of a process.
    pub fn longest(context: &RuleContext<'a>, pid: u32) -> Option<Self> {
        let (mut longest, mut open): (Option<Self>, Option<Self>) = (None, None);
        let samples =
            context.snapshots(pid).iter().filter(|snapshot| snapshot.moment == SnapshotMoment::Sample);
        for snapshot in samples {
            let mut filling = snapshot.buffers.iter().filter(|buffer| buffer.is_being_filled());
            let Some(buffer) = filling.find(|buffer| buffer.unread.contains(&b'\n')) else { continue };
            match open.as_mut().filter(|span| span.continues_in(buffer)) {
                Some(span) => (span.last, span.buffer) = (*snapshot, buffer),
                None => {
                    let oldest_bytes = buffer.unread_bytes;
                    let new = Self { first: *snapshot, last: *snapshot, oldest_bytes, buffer };
                    longest = longest.into_iter().chain(open.replace(new)).max_by(by_length);
                }
            }
        }
        longest.into_iter().chain(open).max_by(by_length)
    }

    fn continues_in(&self, buffer: &Buffer) -> bool {
        let before = self.buffer;
        before.address == buffer.address
            && same_prefix(&before.unread, &buffer.unread)
            && before.unread_bytes <= buffer.unread_bytes
    }

    pub fn length_s(&self) -> f64 {
        self.last.at_s - self.first.at_s
    }

    /// Returns the signal that ended the process while the bytes were unused. None for SIGPIPE: no process reads what they
    /// would have become.
    pub fn ended_by(&self, context: &RuleContext) -> Option<i32> {
        const SIGPIPE: i32 = 13;
        let pid = self.last.pid;
        let Some(Exit::Signal(number)) = context.process(pid)?.exit else { return None };
        let of_end = context.snapshots(pid).iter().filter(|snapshot| snapshot.at_s > self.last.at_s);
        // A snapshot at the end may have the buffer, too.
        let is_last = of_end
            .flat_map(|snapshot| snapshot.buffers)
            .all(|buffer| !buffer.is_being_filled() || self.continues_in(buffer));
        (is_last && number != SIGPIPE).then_some(number)
    }
}

fn by_length(a: &UnusedInput, b: &UnusedInput) -> std::cmp::Ordering {
    a.length_s().total_cmp(&b.length_s())
}
