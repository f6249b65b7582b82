//! Reads the bytes of a write(2) in which a thread blocks. A runtime such as Python's may have them in no buffer any more.

use std::fs;

use weir_model::peek::{WriteInProgress, escaped};
use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::proc::{self, ThreadState};

/// Returns the write(2) in which the main thread blocks, with at most `most` of its bytes. None if the thread is in none, or was not in
/// the same one all the time: then the bytes may be those of another write.
pub(crate) fn write_in_progress(pid: u32, most: u64) -> Option<WriteInProgress> {
    let state = || Some((blocked_write(pid)?, ended_writes(pid)?));
    let before = state()?;
    let (fd, address, bytes) = before.0;
    let read = ProcessMemory { pid }.bytes(address, bytes.min(most) as usize);
    (state() == Some(before)).then(|| WriteInProgress {
        fd,
        bytes,
        preview: escaped(&read),
        preview_bytes: read.len() as u64,
    })
}

/// Returns descriptor, address and length of the write(2) in which a thread blocks.
fn blocked_write(tid: u32) -> Option<(i32, u64, u64)> {
    match proc::thread_state(tid) {
        ThreadState::Waiting { number: libc::SYS_write, args } if args[2] > 0 => {
            Some((args[0] as i32, args[1], args[2]))
        }
        _ => None,
    }
}

/// Returns how many writes of the main thread have ended.
fn ended_writes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/io")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("syscw: "))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_bytes_of_a_blocked_write_are_read() {
        let mut command = Command::new("dd");
        command.args(["if=/dev/zero", "bs=300000", "count=1", "iflag=fullblock"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("dd");
        let mut found = None;
        while found.is_none() && child.try_wait().expect("its state").is_none() {
            found = write_in_progress(child.id(), 4);
            std::thread::yield_now();
        }
        child.kill().expect("a signal");
        child.wait().expect("its end");
        let preview = r"\x00\x00\x00\x00".to_string();
        assert_eq!(found, Some(WriteInProgress { fd: 1, bytes: 300_000, preview, preview_bytes: 4 }));
        assert_eq!(write_in_progress(std::process::id(), 4), None);
    }
}
