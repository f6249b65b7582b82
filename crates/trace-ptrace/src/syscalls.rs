//! Reads the arguments and data of one system call from a stopped thread.

use std::path::Path;

use weir_model::Untrusted;
use weir_model::trace::{HEAD_BYTES, Op};
use weir_sys::file_system::link_status;
use weir_sys::iovec::{self, UIO_MAXIOV};
use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::syscalls;
use weir_trace_api::RawCall;

/// The longest path in bytes: PATH_MAX of linux/limits.h.
const PATH_MAX: usize = 4096;

/// A call between its entry and its exit.
#[derive(Debug)]
pub(super) struct EnteredCall {
    pub op: Op,
    pub args: [u64; 6],
    /// The segments of a vector or message: address and length in bytes.
    segments: Vec<(u64, u64)>,
    paths: Vec<Untrusted>,
    /// For a rename: whether the new name exists.
    replaced: Option<bool>,
    began_ns: u64,
}

impl EnteredCall {
    /// Reads a call at its entry. Paths and vectors are read now, because the memory may change before the exit.
    pub(super) fn enter(tid: u32, op: Op, args: [u64; 6], now: u64) -> Self {
        let memory = ProcessMemory { pid: tid };
        let path = |&(_, at): &(Option<usize>, usize)| string(&memory, args[at]);
        let paths: Vec<Untrusted> = syscalls::paths(op).iter().map(path).collect();
        let replaced = replaces(tid, op, &args, &paths);
        Self { op, args, segments: segments(&memory, op, &args), paths, replaced, began_ns: now }
    }

    /// Returns the requested number of bytes, if the call transfers any.
    pub(super) fn requested_bytes(&self) -> Option<u64> {
        let has_segments = !self.segments.is_empty();
        syscalls::requested_bytes(self.op, &self.args)
            .or_else(|| has_segments.then(|| total_bytes(&self.segments)))
    }

    /// Reads the data of the call at its exit and returns its event.
    pub(super) fn leave(self, tid: u32, result: i64) -> RawCall {
        let (head, tail) = match self.op {
            // The kernel may have copied less than the result, or nothing.
            op if syscalls::counts_discarded(op, &self.args) => Default::default(),
            op if op.writes() && result > 0 => self.written(tid, result as u64),
            op if op.reads() && result > 0 => (self.bytes_read(tid, result as u64), None),
            Op::Pipe | Op::Pipe2 | Op::Socketpair if result == 0 => (self.pair(tid), None),
            _ => Default::default(),
        };
        let requested_bytes = if self.segments.is_empty() { None } else { self.requested_bytes() };
        let (result, requested_bytes) = self.moved(tid, result).unwrap_or((result, requested_bytes));
        let Self { op, mut args, paths, replaced, .. } = self;
        if op == Op::IoUringSetup {
            args[2] = ring_flags(tid, args[1]);
        }
        let began_ns = op.syncs().then_some(self.began_ns);
        let call = RawCall::new(op, args, result);
        RawCall { requested_bytes, head, tail, paths, began_ns, replaced, ..call }
    }

    /// Returns the bytes that a call moved and those that it requested, if its result and arguments do not contain them. A call of
    /// several messages counts as one that requested the bytes that it moved.
    fn moved(&self, tid: u32, result: i64) -> Option<(i64, Option<u64>)> {
        if let Some(address) = syscalls::messages(self.op, &self.args).filter(|_| result > 0) {
            let bytes = self.message_bytes(tid, address, result as u64);
            return Some((bytes as i64, Some(bytes)));
        }
        let requested = self.requested_bytes().filter(|_| syscalls::counts_discarded(self.op, &self.args))?;
        Some((result.min(i64::try_from(requested).unwrap_or(i64::MAX)), Some(requested)))
    }

    /// Returns the bytes of the first `count` messages at `address`.
    fn message_bytes(&self, tid: u32, address: u64, count: u64) -> u64 {
        // struct mmsghdr: a struct msghdr, with msg_flags at 48, and msg_len at 56.
        const HEADER_BYTES: u64 = 64;
        let memory = ProcessMemory { pid: tid };
        let headers = memory.bytes(address, (count.min(UIO_MAXIOV as u64) * HEADER_BYTES) as usize);
        let number =
            |header: &[u8], at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let bytes = headers.chunks_exact(HEADER_BYTES as usize).zip(0..).map(|(header, index)| {
            let (flags, length) = (number(header, 48) as i32, u64::from(number(header, 56)));
            if !syscalls::counts_discarded(self.op, &self.args) || flags & libc::MSG_TRUNC == 0 {
                return length;
            }
            length.min(total_bytes(&message_segments(&memory, address.wrapping_add(index * HEADER_BYTES))))
        });
        bytes.sum()
    }

    /// Returns the first bytes and the last one of the `bytes` that were written.
    fn written(&self, tid: u32, bytes: u64) -> (Vec<u8>, Option<u8>) {
        let (Some(first), Some(last)) = (self.first(), self.address_of(bytes - 1)) else {
            return Default::default();
        };
        let length = first.1.min(bytes).min(HEAD_BYTES as u64) as usize;
        let mut data = [0; HEAD_BYTES + 1];
        let got = ProcessMemory { pid: tid }.read_and_byte(first.0, last, &mut data[..=length]);
        let tail = (got > length).then(|| data[length]);
        let mut head = data[..got.min(length)].to_vec();
        self.gather_head(tid, bytes, &mut head);
        (head, tail)
    }

    /// Appends the bytes of the segments after the first one to the first bytes of a call that moved `bytes`.
    fn gather_head(&self, tid: u32, bytes: u64, head: &mut Vec<u8>) {
        let most = bytes.min(HEAD_BYTES as u64) as usize;
        let mut filled = self.segments.iter().filter(|segment| segment.1 > 0);
        if filled.next().is_none_or(|first| head.len() as u64 != first.1) {
            return;
        }
        for &(address, length) in filled {
            let wanted = (most - head.len()).min(usize::try_from(length).unwrap_or(usize::MAX));
            let data = ProcessMemory { pid: tid }.bytes(address, wanted);
            head.extend_from_slice(&data);
            if data.len() < wanted || head.len() == most {
                return;
            }
        }
    }

    /// Returns the first of the `bytes` that were read.
    fn bytes_read(&self, tid: u32, bytes: u64) -> Vec<u8> {
        let first = self.first().map(|(address, room)| (address, room.min(bytes).min(HEAD_BYTES as u64)));
        first.map_or_else(Vec::new, |(address, bytes)| {
            ProcessMemory { pid: tid }.bytes(address, bytes as usize)
        })
    }

    /// Returns the two descriptors that the call created, as its memory holds them.
    fn pair(&self, tid: u32) -> Vec<u8> {
        let at = if self.op == Op::Socketpair { self.args[3] } else { self.args[0] };
        ProcessMemory { pid: tid }.bytes(at, 8)
    }

    /// Returns address and length of the first non-empty buffer.
    fn first(&self) -> Option<(u64, u64)> {
        let asked = syscalls::requested_bytes(self.op, &self.args).unwrap_or(0);
        let flat = syscalls::buffer(self.op, &self.args).map(|address| (address, asked));
        flat.or_else(|| self.segments.iter().copied().find(|segment| segment.1 > 0))
    }

    /// Returns the address of the byte with this index in the call's buffers.
    fn address_of(&self, mut index: u64) -> Option<u64> {
        if let Some(address) = syscalls::buffer(self.op, &self.args) {
            return address.checked_add(index);
        }
        for &(address, length) in &self.segments {
            if index < length {
                return address.checked_add(index);
            }
            index -= length;
        }
        None
    }
}

/// Returns `flags` of struct io_uring_params, its third word. The event carries it as the unused third argument of
/// io_uring_setup(2).
fn ring_flags(tid: u32, parameters: u64) -> u64 {
    let flags = parameters.checked_add(8).map(|at| ProcessMemory { pid: tid }.bytes(at, 4));
    flags.and_then(|flags| flags.try_into().ok()).map_or(0, u32::from_le_bytes).into()
}

/// Returns whether the new name of a rename exists, as the stopped thread sees it; None for other calls or if unknown.
fn replaces(tid: u32, op: Op, args: &[u64; 6], paths: &[Untrusted]) -> Option<bool> {
    if !matches!(op, Op::Rename | Op::Renameat | Op::Renameat2) {
        return None;
    }
    let (to, directory) = (paths.get(1)?.to_path(), syscalls::paths(op).get(1)?.0);
    let start = match directory.map(|argument| args[argument] as i32) {
        _ if to.is_absolute() => "root".into(),
        None | Some(libc::AT_FDCWD) => "cwd".into(),
        Some(fd) => format!("fd/{fd}"),
    };
    let below = to.strip_prefix("/").unwrap_or(&to);
    match link_status(&Path::new("/proc").join(tid.to_string()).join(start).join(below)) {
        Ok(_) => Some(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(false),
        Err(_) => None,
    }
}

/// Converts the kernel's restart codes to EINTR. The program sees EINTR, or the kernel restarts the call.
pub(super) fn visible_result(result: i64) -> i64 {
    if syscalls::RESTART_CODES.contains(&result) { -i64::from(libc::EINTR) } else { result }
}

/// Reads the segments of a vector or message from the thread's memory.
fn segments(memory: &ProcessMemory, op: Op, args: &[u64; 6]) -> Vec<(u64, u64)> {
    match (syscalls::vector(op, args), syscalls::message(op, args)) {
        (Some((address, count)), _) => iovec::read(memory, address, count, UIO_MAXIOV),
        (None, Some(message)) => message_segments(memory, message),
        (None, None) => Vec::new(),
    }
}

/// Reads the segments of a struct msghdr.
fn message_segments(memory: &ProcessMemory, message: u64) -> Vec<(u64, u64)> {
    let vector = iovec::of_message(memory, message);
    vector.map_or_else(Vec::new, |(address, count)| iovec::read(memory, address, count, UIO_MAXIOV))
}

/// Returns the length of all segments. The program chooses the lengths, whose sum can be too large for the kernel and for a number.
fn total_bytes(segments: &[(u64, u64)]) -> u64 {
    segments.iter().fold(0, |sum, segment| sum.saturating_add(segment.1))
}

/// Reads a C string, never across a page boundary in one read: the next page may be unmapped.
fn string(memory: &ProcessMemory, address: u64) -> Untrusted {
    const PAGE: u64 = 4096;
    let mut text = Vec::new();
    while text.len() < PATH_MAX {
        let at = address.wrapping_add(text.len() as u64);
        let part = memory.bytes(at, (PAGE - at % PAGE).min(256) as usize);
        let end = part.iter().position(|&byte| byte == 0);
        text.extend_from_slice(&part[..end.unwrap_or(part.len())]);
        if end.is_some() || part.is_empty() {
            break;
        }
    }
    Untrusted::of_bytes(&text)
}

#[cfg(test)]
mod tests {
    use super::total_bytes;

    #[test]
    fn lengths_beyond_any_number_do_not_overflow() {
        assert_eq!(total_bytes(&[(0, 1 << 63), (0, 1 << 63)]), u64::MAX);
        assert_eq!(total_bytes(&[(16, 3), (0, 4)]), 7);
    }
}
