//! Calls that neither begin nor end while a process is traced.

use weir_model::Direction;
use weir_model::trace::StreamCounts;

use crate::Recorder;
use crate::streams::StreamKey;

impl Recorder {
    /// Adds a call that has blocked for `blocked_s` seconds, since tracing began. The recording gets its stream if no call on it
    /// ended meanwhile.
    pub fn add_blocked_call(&mut self, pid: u32, fd: i32, direction: Direction, blocked_s: f64) {
        let (image, file) = (self.image(pid, self.latest_s), self.file_of(pid, fd));
        self.blocked_calls.push(((pid, image, fd, file, direction), blocked_s));
    }

    /// Adds the streams of the blocked calls, after those of calls in gaps.
    pub(super) fn settle_blocked_calls(&mut self) {
        // The calls of the other streams without a count have ended, in a gap or with their process.
        for stream in self.streams.all.iter_mut().filter(|stream| stream.is_blocked_throughout()) {
            stream.wait_s = Some(0.0);
        }
        for (key, blocked_s) in std::mem::take(&mut self.blocked_calls) {
            if !self.has_calls_like(key) {
                let index = self.streams.add_unobserved(key, 0.0);
                self.streams.all[index].wait_s = Some(blocked_s);
            }
        }
        self.streams
            .all
            .retain(|stream| stream.calls > 0 || stream.wait_s != Some(0.0) || has_other_calls(stream));
    }

    /// Returns whether calls ended that are on the same stream, or perhaps on it.
    fn has_calls_like(&self, (pid, _, fd, _, direction): StreamKey) -> bool {
        self.streams.all.iter().any(|stream| {
            (stream.pid, stream.direction) == (pid, direction)
                && (stream.fd == fd || !stream.is_known())
                && stream.calls > 0
        })
    }
}

fn has_other_calls(stream: &StreamCounts) -> bool {
    stream.syncs > 0 || stream.seeks > 0
}
