//! The time that the tracer waits for a processor: on a busy machine, the largest part of the cost of a stop.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The scheduling delay of the thread that created it.
#[derive(Debug)]
pub(super) struct SchedulingDelay {
    /// /proc/thread-self/schedstat, kept open because opening takes longer than reading. None without CONFIG_SCHED_INFO.
    file: Option<File>,
    last_ns: u64,
}

impl SchedulingDelay {
    /// Creates a counter that starts at zero now.
    pub fn new() -> Self {
        let mut delay = Self { file: File::open("/proc/thread-self/schedstat").ok(), last_ns: 0 };
        delay.since_last_ns();
        delay
    }

    /// Returns the nanoseconds of delay since the last call.
    pub fn since_last_ns(&mut self) -> u64 {
        let mut text = [0; 80];
        let read = self.file.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        let now = read.and_then(|bytes| waited_ns(&text[..bytes])).unwrap_or(self.last_ns);
        now.saturating_sub(std::mem::replace(&mut self.last_ns, now))
    }
}

/// Parses schedstat. Returns its second field: the time in the run queue, in nanoseconds.
fn waited_ns(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_field_is_the_delay() {
        assert_eq!(waited_ns(b"291920790 4476798 57\n"), Some(4_476_798));
        assert_eq!(waited_ns(b"0"), None);
    }

    #[test]
    fn a_delay_is_returned_once() {
        let mut delay = SchedulingDelay { file: None, last_ns: 5 };
        assert_eq!(delay.since_last_ns(), 0);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("schedstat");
        std::fs::write(&path, "1 700 3\n").unwrap();
        delay.file = Some(File::open(&path).unwrap());
        assert_eq!((delay.since_last_ns(), delay.since_last_ns()), (695, 0));
    }
}
