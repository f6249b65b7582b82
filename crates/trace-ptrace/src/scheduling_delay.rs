//! How long the tracer had to wait for a processor: on a busy machine that is most of what a stop costs.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Of the thread that made it.
#[derive(Debug)]
pub(super) struct SchedulingDelay {
    /// Kept open: to open it takes longer than to read it. None where the kernel does not keep it.
    file: Option<File>,
    known_ns: u64,
}

impl SchedulingDelay {
    pub fn new() -> Self {
        let mut delay = Self { file: File::open("/proc/thread-self/schedstat").ok(), known_ns: 0 };
        delay.since_last_ns();
        delay
    }

    /// What came to it since the last call.
    pub fn since_last_ns(&mut self) -> u64 {
        let mut text = [0; 80];
        let read = self.file.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        let now = read.and_then(|bytes| waited_ns(&text[..bytes])).unwrap_or(self.known_ns);
        now.saturating_sub(std::mem::replace(&mut self.known_ns, now))
    }
}

/// The second field: the time in which it could have run and was not let.
fn waited_ns(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_field_is_the_wait() {
        assert_eq!(waited_ns(b"291920790 4476798 57\n"), Some(4_476_798));
        assert_eq!(waited_ns(b"0"), None);
    }

    #[test]
    fn what_was_waited_comes_once() {
        let mut delay = SchedulingDelay { file: None, known_ns: 5 };
        assert_eq!(delay.since_last_ns(), 0);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("schedstat");
        std::fs::write(&path, "1 700 3\n").unwrap();
        delay.file = Some(File::open(&path).unwrap());
        assert_eq!((delay.since_last_ns(), delay.since_last_ns()), (695, 0));
    }
}
