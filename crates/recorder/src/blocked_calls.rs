//! Calls that neither begin nor end while a process is traced.

use weir_model::Direction;

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
        for (key, blocked_s) in std::mem::take(&mut self.blocked_calls) {
            if !self.has_calls_like(key) {
                let index = self.streams.add_unobserved(key, 0.0);
                self.streams.all[index].wait_s = Some(blocked_s);
            }
        }
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
