//! Finds the pending bytes that a process has from a fork(2): the process that wrote them has them too.
//!
//! Processes that one execve(2) has started have the same random address of the stack, so they are related by fork(2). A stream at the
//! same address, over the same file, whose pending bytes begin alike in such a process and its parent is a copy: no other trace of the
//! fork is left. Two processes that write the same line after the fork look alike; their bytes then count as a copy, too, because
//! bytes that are written late harm less than bytes that are written twice.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_model::Untrusted;
use weir_model::fork_copy::ForkCopy;
use weir_model::peek::{Peek, PeekStream};
use weir_model::trace::Buffer;
use weir_sys::expendable::{Limits, Rights, answer_of};
use weir_sys::memory::ProcessMemory;
use weir_sys::process_access::check_answers;
use weir_sys::process_identity::ProcessIdentity;
use weir_sys::{proc, process_stat};
use weir_walkers::{USER_SEARCH_TIME, set_search_time, walkers};

/// The most generations of parents in which the original is searched: more than programs fork without execve(2).
const MAX_GENERATIONS: usize = 8;
/// The most processes whose buffers are read, at some milliseconds each.
const MAX_PROCESSES: usize = 512;
/// The number of reads of a process's buffers, and the pause between them: a walker rejects a stream that changes while it is read.
const READS: usize = 4;
const READ_PAUSE: Duration = Duration::from_micros(700);
/// The limits of the read of one process. A read of memory takes microseconds.
const LIMITS: Limits = Limits { blocked: Duration::from_secs(2), total: None };

/// A stream with pending bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PendingStream {
    address: u64,
    fd: i32,
    path: Untrusted,
    pending_bytes: u64,
    /// The first pending bytes.
    bytes: Vec<u8>,
}

impl PendingStream {
    /// Returns whether the stream has more pending bytes than these first ones.
    fn has_more_than(&self, bytes: usize) -> bool {
        self.bytes.len() == bytes && self.pending_bytes > bytes as u64
    }
}

/// Returns the copies that the processes have. The process with the original need not be one of them. `known` has those that were
/// found before: they count while the bytes are still pending, also if the original is written.
pub fn fork_copies(processes: &[ProcessIdentity], known: &[ForkCopy]) -> Vec<ForkCopy> {
    let mut reads = BufferReads::default();
    let mut copies = Vec::new();
    let origins: Vec<Origin> = processes.iter().map(|process| Origin::of(process.pid())).collect();
    for (at, origin) in origins.iter().enumerate() {
        let (pid, relatives) = (origin.pid, origin.relatives(&origins[..at]));
        let known: Vec<&ForkCopy> = known.iter().filter(|copy| copy.pid == pid).collect();
        if relatives.is_empty() && known.is_empty() {
            continue;
        }
        for stream in reads.streams(pid).iter() {
            let mut originals = relatives.iter().filter_map(|relative| {
                let originals = reads.streams(*relative);
                originals.iter().find_map(|original| copy(pid, stream, *relative, original))
            });
            let is_known =
                |copy: &&&ForkCopy| copy.address == stream.address && stream.bytes.starts_with(&copy.bytes);
            let known = known.iter().find(is_known).map(|copy| (*copy).clone());
            copies.extend(originals.next().or(known));
        }
    }
    copies
}

/// Notes in the streams of processes which pending bytes are copies.
pub fn mark_copies(processes: &mut [Peek], copies: &[ForkCopy]) {
    for peek in processes {
        for copy in copies.iter().filter(|copy| copy.pid == peek.pid) {
            let is_copy = |one: &&mut PeekStream| {
                (one.address, one.fd) == (copy.address, copy.fd)
                    && one.pending_bytes >= copy.bytes.len() as u64
            };
            let Some(stream) = peek.streams.iter_mut().find(is_copy) else { continue };
            (stream.copied_bytes, stream.is_copy_cut) = (copy.bytes.len() as u64, copy.is_cut);
            (stream.copy_of, stream.copy_of_comm) = (Some(copy.original), copy.original_comm.clone());
        }
    }
}

/// The execve(2) and the forks from which a process comes.
struct Origin {
    pid: u32,
    /// As [`image`].
    image: Option<(u64, u64)>,
    /// The parents that run the program of the same execve(2), the oldest first.
    ancestors: Vec<u32>,
}

impl Origin {
    fn of(pid: u32) -> Origin {
        let image = image(pid);
        Origin { pid, image, ancestors: image.map_or(Vec::new(), |image| ancestors(pid, image)) }
    }

    /// Returns the processes from which this one can have copies, the oldest first: its parents, or those of `others` that have lost
    /// their parents as it has.
    fn relatives(&self, others: &[Origin]) -> Vec<u32> {
        if self.image.is_none() || !self.ancestors.is_empty() {
            return self.ancestors.clone();
        }
        let alike = others.iter().filter(|other| other.image == self.image && other.ancestors.is_empty());
        alike.map(|other| other.pid).collect()
    }
}

/// Returns the parents of a process that have its image, the oldest first.
fn ancestors(pid: u32, own: (u64, u64)) -> Vec<u32> {
    let mut found = Vec::new();
    let mut last = pid;
    while found.len() < MAX_GENERATIONS {
        let Some(parent) = process_stat::read(last).map(|stat| stat.parent) else { break };
        if parent == 0 || check_answers(parent).is_err() || image(parent) != Some(own) {
            break;
        }
        found.insert(0, parent);
        last = parent;
    }
    found
}

/// Returns the addresses of code and stack, which are the same only in processes that one execve(2) has started; None if they may
/// not be read.
fn image(pid: u32) -> Option<(u64, u64)> {
    check_answers(pid).ok()?;
    process_stat::read(pid).map(|stat| stat.image()).filter(|(_, stack)| *stack != 0)
}

/// Returns the copy that `stream` of `pid` is of `original` in the process `relative`; None if it is none.
fn copy(pid: u32, stream: &PendingStream, relative: u32, original: &PendingStream) -> Option<ForkCopy> {
    if (stream.address, &stream.path) != (original.address, &original.path) {
        return None;
    }
    let len = copied_len(&stream.bytes, &original.bytes)?;
    Some(ForkCopy {
        pid,
        address: stream.address,
        fd: stream.fd,
        bytes: stream.bytes[..len].to_vec(),
        is_cut: stream.has_more_than(len) && original.has_more_than(len),
        original: relative,
        original_comm: proc::comm(relative),
    })
}

/// Returns how many of the first bytes are the same, if these are all of one of the two, or whole lines: each process can have added
/// bytes of its own.
fn copied_len(one: &[u8], other: &[u8]) -> Option<usize> {
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let is_whole = same > 0 && (same == one.len() || same == other.len());
    if is_whole { Some(same) } else { one[..same].iter().rposition(|byte| *byte == b'\n').map(|at| at + 1) }
}

/// The buffers that were read already.
#[derive(Debug, Default)]
struct BufferReads {
    by_pid: HashMap<u32, Rc<[PendingStream]>>,
}

impl BufferReads {
    /// Returns the streams of a process with pending bytes; none if it does not answer, or after [`MAX_PROCESSES`].
    fn streams(&mut self, pid: u32) -> Rc<[PendingStream]> {
        if !self.by_pid.contains_key(&pid) && self.by_pid.len() < MAX_PROCESSES && check_answers(pid).is_ok()
        {
            let read = |_: &AtomicBool| serde_json::to_vec(&read(pid)).unwrap_or_default();
            let answer = answer_of(Rights::ReadingOnly, read, LIMITS, None).unwrap_or_default();
            let streams: Vec<PendingStream> = serde_json::from_slice(&answer).unwrap_or_default();
            self.by_pid.insert(pid, streams.into());
        }
        self.by_pid.get(&pid).cloned().unwrap_or_default()
    }
}

fn read(pid: u32) -> Vec<PendingStream> {
    set_search_time(USER_SEARCH_TIME);
    let (walkers, memory) = (walkers(pid), ProcessMemory { pid });
    let mut found: Vec<PendingStream> = Vec::new();
    for number in 0..READS {
        if number > 0 && !proc::is_running(pid) {
            break;
        }
        if number > 0 {
            std::thread::sleep(READ_PAUSE);
        }
        let buffers = walkers.iter().flat_map(|walker| walker.buffers(&memory));
        for buffer in buffers.filter(|one| one.fd >= 0 && !one.pending.is_empty()) {
            found.retain(|one| (one.address, one.fd) != (buffer.address, buffer.fd));
            let path = proc::descriptor(pid, buffer.fd).unwrap_or_default();
            let Buffer { address, fd, pending_bytes, pending: bytes, .. } = buffer;
            found.push(PendingStream { address, fd, path, pending_bytes, bytes });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_begin_with_all_bytes_or_whole_lines_of_the_original() {
        let len = |one: &str, other: &str| copied_len(one.as_bytes(), other.as_bytes());
        assert_eq!(len("head\n", "head\n"), Some(5));
        assert_eq!(len("head\nown\n", "head\n"), Some(5), "the child wrote on");
        assert_eq!(len("head\n", "head\nmore\n"), Some(5), "the parent wrote on");
        assert_eq!(len("head\nown\n", "head\nothers\n"), Some(5), "both wrote on");
        assert_eq!(len("Name? ", "Name? "), Some(6));
        assert_eq!(len("job 1\n", "job 2\n"), None);
        assert_eq!([len("", "head\n"), len("own\n", ""), len("", "")], [None; 3]);
    }

    #[test]
    fn only_a_stream_of_the_same_file_at_the_same_address_is_a_copy() {
        let stream = |address, path: &str| {
            let (path, bytes) = (path.into(), b"a\n".into());
            PendingStream { address, fd: 1, path, pending_bytes: 2, bytes }
        };
        let own = stream(0x1000, "/log");
        assert_eq!(
            copy(7, &own, 6, &own).map(|copy| (copy.pid, copy.original, copy.bytes)),
            Some((7, 6, b"a\n".into()))
        );
        assert_eq!(copy(7, &own, 6, &stream(0x2000, "/log")), None);
        assert_eq!(copy(7, &own, 6, &stream(0x1000, "/other")), None);
    }

    #[test]
    fn a_copy_is_cut_if_both_have_more_bytes_than_were_compared() {
        let stream = |pending_bytes: u64| {
            let (path, bytes) = ("/log".into(), vec![b'a'; pending_bytes.min(256) as usize]);
            PendingStream { address: 0x1000, fd: 1, path, pending_bytes, bytes }
        };
        let copied = |own, original| {
            let copy = copy(7, &stream(own), 6, &stream(original)).expect("a copy");
            (copy.bytes.len(), copy.is_cut)
        };
        assert_eq!(copied(1000, 1000), (256, true));
        assert_eq!([copied(1000, 256), copied(256, 1000)], [(256, false); 2]);
        assert_eq!(copied(1000, 9), (9, false));
    }

    #[test]
    fn a_program_that_another_one_starts_is_no_relative() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let found = Origin::of(child.id()).relatives(&[Origin::of(std::process::id())]);
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        assert_eq!(found, Vec::<u32>::new());
    }
}
