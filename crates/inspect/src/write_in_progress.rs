//! Reads the bytes of the output calls in which the threads of a process block. A runtime such as Python's may have them in no buffer
//! any more.

use std::fs;

use weir_model::peek::{WriteInProgress, escaped};
use weir_sys::iovec::{self, UIO_MAXIOV};
use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::proc::{self, ThreadState};
use weir_sys::syscalls;

/// The most threads whose calls are read, at about 20 µs each.
const MAX_THREADS: usize = 512;
/// The most calls that are shown.
const MAX_SHOWN: usize = 16;

/// Returns the output call in which the main thread of a process blocks, and those of its other threads, as [`writes_in_progress`].
pub(crate) fn of_main_and_others(
    pid: u32,
    most: (u64, u64),
) -> (Option<WriteInProgress>, Vec<WriteInProgress>) {
    let all = writes_in_progress(pid, most).into_iter();
    let (of_main, others): (Vec<_>, Vec<_>) = all.partition(|one| one.tid == pid);
    (of_main.into_iter().next(), others)
}

/// Returns the output calls in which threads of a process block, that of the main thread first, with at most `each` of the bytes of one,
/// and at most `left` of the bytes of all. A thread that was not in the same call all the time is left out: the bytes may be those of
/// another call.
fn writes_in_progress(pid: u32, (each, mut left): (u64, u64)) -> Vec<WriteInProgress> {
    let mut threads = proc::threads(pid);
    threads.sort_unstable_by_key(|tid| (*tid != pid, *tid));
    let writes = threads.into_iter().take(MAX_THREADS).filter_map(|tid| {
        let write = write_of(pid, tid, each.min(left))?;
        left -= write.preview_bytes;
        Some(write)
    });
    writes.take(MAX_SHOWN).collect()
}

/// Returns the output call in which a thread blocks.
fn write_of(pid: u32, tid: u32, most: u64) -> Option<WriteInProgress> {
    let state = || Some((blocked_call(tid)?, counters(pid, tid)?));
    let before = state()?;
    let (number, args) = before.0;
    let memory = ProcessMemory { pid: tid };
    let segments = segments_of(number, &args, &memory)?;
    let bytes = segments.iter().fold(0, |sum: u64, (_, len)| sum.saturating_add(*len));
    let read = beginning(&memory, &segments, most);
    let is_same = bytes > 0 && state() == Some(before);
    is_same.then(|| WriteInProgress {
        tid,
        call: syscalls::name(number).unwrap_or_default().to_string(),
        fd: args[0] as i32,
        bytes,
        preview: escaped(&read),
        preview_bytes: read.len() as u64,
    })
}

/// Returns number and arguments of the call in which a thread blocks.
fn blocked_call(tid: u32) -> Option<(i64, [u64; 6])> {
    match proc::thread_state(tid) {
        ThreadState::Waiting { number, args } => Some((number, args)),
        _ => None,
    }
}

/// Returns address and length of each segment that an output call writes; None for another call.
fn segments_of(number: i64, args: &[u64; 6], memory: &ProcessMemory) -> Option<Vec<(u64, u64)>> {
    match number {
        libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_sendto => Some(vec![(args[1], args[2])]),
        libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 => all_segments(memory, (args[1], args[2])),
        libc::SYS_sendmsg => all_segments(memory, iovec::of_message(memory, args[1])?),
        _ => None,
    }
}

/// Reads a vector; None if it has more segments than the kernel takes, or cannot be read whole.
fn all_segments(memory: &ProcessMemory, (address, count): (u64, u64)) -> Option<Vec<(u64, u64)>> {
    let segments = iovec::read(memory, address, count, UIO_MAXIOV);
    (segments.len() as u64 == count).then_some(segments)
}

/// Reads the first bytes of segments, at most `most`.
fn beginning(memory: &ProcessMemory, segments: &[(u64, u64)], most: u64) -> Vec<u8> {
    let mut read = Vec::new();
    for (address, len) in segments {
        let wanted = (*len).min(most - read.len() as u64);
        let bytes = memory.bytes(*address, wanted as usize);
        read.extend_from_slice(&bytes);
        if (bytes.len() as u64) < wanted || read.len() as u64 == most {
            break;
        }
    }
    read
}

/// Returns how many writes of a thread have ended, and how often it gave up its CPU: a call that sends to a socket counts as no write.
fn counters(pid: u32, tid: u32) -> Option<(u64, String)> {
    let io = fs::read_to_string(format!("/proc/{pid}/task/{tid}/io")).ok()?;
    let writes = io.lines().find_map(|line| line.strip_prefix("syscw: "))?.parse().ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let switches = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?;
    Some((writes, switches.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_bytes_of_a_blocked_write_are_read() {
        let mut command = Command::new("dd");
        command.args(["if=/dev/zero", "bs=300000", "count=1", "iflag=fullblock"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("dd");
        let mut found = Vec::new();
        while found.is_empty() && child.try_wait().expect("its state").is_none() {
            found = writes_in_progress(child.id(), (4, 100));
            std::thread::yield_now();
        }
        child.kill().expect("a signal");
        child.wait().expect("its end");
        let (call, preview) = ("write".to_string(), r"\x00\x00\x00\x00".to_string());
        let expected =
            WriteInProgress { tid: child.id(), call, fd: 1, bytes: 300_000, preview, preview_bytes: 4 };
        assert_eq!(found, [expected]);
        assert_eq!(writes_in_progress(std::process::id(), (4, 100)), []);
    }

    /// Each of its threads blocks in another output call, on a full pipe or socket of its own.
    const BLOCKED: &str = "import os, socket, sys, threading, time\n\
        def pair(): return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)\n\
        pipes, sockets = os.pipe(), [pair() for _ in range(2)]\n\
        rest = b'r' * 2000000\n\
        calls = [lambda: os.writev(pipes[1], [b'', b'first ', b'second ', rest]),\n\
            lambda: sockets[0][0].send(b'sent ' + rest),\n\
            lambda: sockets[1][0].sendmsg([b'one ', b'two ', rest])]\n\
        for call in calls: threading.Thread(target=call, daemon=True).start()\n\
        time.sleep(0.2)\n\
        print(flush=True)\n\
        time.sleep(60)\n";

    #[test]
    fn the_output_calls_of_all_threads_are_read() {
        let python = Command::new("python3").args(["-c", BLOCKED]).stdout(Stdio::piped()).spawn();
        let mut child = python.expect("python3 starts");
        let is_ready = child.stdout.as_mut().expect("a pipe").read_exact(&mut [0]);
        let until = Instant::now() + Duration::from_secs(20);
        let mut found = Vec::new();
        while found.len() < 3 && Instant::now() < until {
            found = writes_in_progress(child.id(), (13, 100));
            std::thread::sleep(Duration::from_millis(10));
        }
        let limited = writes_in_progress(child.id(), (13, 20));
        child.kill().expect("a signal");
        child.wait().expect("its end");
        is_ready.expect("it runs");
        let mut shown: Vec<(&str, u64, &str)> =
            found.iter().map(|one| (one.call.as_str(), one.bytes, one.preview.as_str())).collect();
        shown.sort_unstable();
        let expected = [
            ("sendmsg", 2_000_008, "one two rrrrr"),
            ("sendto", 2_000_005, "sent rrrrrrrr"),
            ("writev", 2_000_013, "first second "),
        ];
        assert_eq!(shown, expected);
        assert!(found.iter().all(|one| one.tid != child.id()), "the main thread sleeps");
        let sizes: Vec<u64> = limited.iter().map(|one| one.preview_bytes).collect();
        assert_eq!(sizes, [13, 7, 0], "of all calls together");
    }
}
