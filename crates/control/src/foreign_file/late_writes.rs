//! Writes that a process makes for weir and that do not return. The user gets a sentence about the bytes of each.

use std::io;
use std::sync::{Mutex, PoisonError};

use weir_sys::{errno_text, proc, syscalls};

/// A write that has not returned. Its bytes count as written.
pub(super) struct LateWrite {
    process: String,
    fd: i32,
    bytes: u64,
    /// The index of its sentence.
    sentence: usize,
}

static SENTENCES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Returns a sentence about each write that has not returned in time.
pub(crate) fn sentences() -> Vec<String> {
    SENTENCES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

impl LateWrite {
    /// Notes that a thread's write is late.
    pub fn begin(tid: u32, fd: i32, bytes: u64) -> LateWrite {
        let process = proc::label(proc::process_of(tid).unwrap_or(tid));
        let mut sentences = SENTENCES.lock().unwrap_or_else(PoisonError::into_inner);
        sentences.push(format!(
            "{process} does not return from a write of {bytes} bytes to descriptor {fd} that it makes for weir: its file \
             does not answer; it is not known whether they are written, and weir does not write them again"
        ));
        LateWrite { process, fd, bytes, sentence: sentences.len() - 1 }
    }

    /// Notes the result of the call; None if it is not known, because the thread was killed.
    pub fn note_result(self, result: Option<i64>) {
        let Some(result) = result else { return };
        let written = u64::try_from(result).unwrap_or(0);
        let LateWrite { process, fd, bytes, sentence } = self;
        let beginning =
            format!("{process} returned late from a write to descriptor {fd} that it made for weir");
        let text = if written == bytes {
            format!("{beginning}: all {bytes} bytes are written")
        } else if result < 0 && !syscalls::RESTART_CODES.contains(&result) {
            let why = errno_text(&io::Error::from_raw_os_error(-result as i32));
            format!("{beginning}: {bytes} bytes are lost: {why}")
        } else {
            format!("{beginning}: {} of {bytes} bytes are lost", bytes.saturating_sub(written))
        };
        if let Some(known) = SENTENCES.lock().unwrap_or_else(PoisonError::into_inner).get_mut(sentence) {
            *known = text;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_tells_what_is_known() {
        let own = std::process::id();
        let late = LateWrite::begin(own, 3, 10);
        let at = late.sentence;
        assert!(sentences()[at].contains("it is not known whether they are written"));
        late.note_result(Some(10));
        assert!(sentences()[at].contains("all 10 bytes are written"));
        for (result, text) in
            [(Some(4), "6 of 10 bytes are lost"), (None, "it is not known"), (Some(-5), "lost: EIO")]
        {
            let late = LateWrite::begin(own, 3, 10);
            let at = late.sentence;
            late.note_result(result);
            assert!(sentences()[at].contains(text), "{}", sentences()[at]);
        }
    }
}
