//! One system call of a stopped thread: what its arguments say and what its memory has.

use weir_model::trace::Op;
use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::syscalls;
use weir_trace_api::RawCall;

/// Bytes of a write that are kept.
const HEAD: usize = 64;
/// As long as a path may be.
const PATH_MAX: usize = 4096;
/// As many pieces as a vector may have.
const IOV_MAX: u64 = 1024;

/// A call between its entry and its exit.
#[derive(Debug)]
pub(super) struct EnteredCall {
    pub op: Op,
    pub args: [u64; 6],
    /// Pieces of a vector or message: address, length.
    pieces: Vec<(u64, u64)>,
    paths: Vec<String>,
    /// Of a rename: whether there is a file of the new name.
    replaced: Option<bool>,
    began_ns: u64,
}

impl EnteredCall {
    /// At the entry: what may be gone at the exit is read now.
    pub(super) fn enter(tid: u32, op: Op, args: [u64; 6], now: u64) -> Self {
        let memory = ProcessMemory { pid: tid };
        let path = |&(_, at): &(Option<usize>, usize)| string(&memory, args[at]);
        let paths: Vec<String> = syscalls::paths(op).iter().map(path).collect();
        let replaced = replaces(tid, op, &args, &paths);
        Self { op, args, pieces: pieces(&memory, op, &args), paths, replaced, began_ns: now }
    }

    /// Bytes asked for.
    pub(super) fn asked(&self) -> Option<u64> {
        let summed = !self.pieces.is_empty();
        syscalls::requested_bytes(self.op, &self.args)
            .or_else(|| summed.then(|| self.pieces.iter().map(|piece| piece.1).sum()))
    }

    /// At the exit.
    pub(super) fn leave(self, tid: u32, result: i64) -> RawCall {
        let (head, tail) = match self.op {
            op if op.writes() && result > 0 => self.written(tid, result as u64),
            op if op.reads() && result > 0 => (self.taken(tid, result as u64), None),
            Op::Pipe | Op::Pipe2 | Op::Socketpair if result == 0 => (self.pair(tid), None),
            _ => Default::default(),
        };
        let asked = if self.pieces.is_empty() { None } else { self.asked() };
        let Self { op, mut args, paths, replaced, .. } = self;
        if op == Op::IoUringSetup {
            args[2] = ring_flags(tid, args[1]);
        }
        let began_ns = op.syncs().then_some(self.began_ns);
        let call = RawCall::new(op, args, seen_result(result));
        RawCall { requested_bytes: asked, head, tail, paths, began_ns, replaced, ..call }
    }

    /// The first bytes and the last one of `bytes` that were written.
    fn written(&self, tid: u32, bytes: u64) -> (Vec<u8>, Option<u8>) {
        let (Some(first), Some(last)) = (self.first(), self.address_of(bytes - 1)) else {
            return Default::default();
        };
        let length = first.1.min(bytes).min(HEAD as u64) as usize;
        let mut data = [0; HEAD + 1];
        let got = read_two(tid, (first.0, length), last, &mut data);
        let tail = (got > length).then(|| data[length]);
        (data[..got.min(length)].to_vec(), tail)
    }

    /// The first bytes of those that were read.
    fn taken(&self, tid: u32, bytes: u64) -> Vec<u8> {
        let first = self.first().map(|(address, room)| (address, room.min(bytes).min(HEAD as u64)));
        first.map_or_else(Vec::new, |(address, bytes)| {
            ProcessMemory { pid: tid }.bytes(address, bytes as usize)
        })
    }

    /// The two descriptors that the call has made.
    fn pair(&self, tid: u32) -> Vec<u8> {
        let at = if self.op == Op::Socketpair { self.args[3] } else { self.args[0] };
        ProcessMemory { pid: tid }.bytes(at, 8)
    }

    fn first(&self) -> Option<(u64, u64)> {
        let asked = syscalls::requested_bytes(self.op, &self.args).unwrap_or(0);
        let flat = syscalls::buffer(self.op, &self.args).map(|address| (address, asked));
        flat.or_else(|| self.pieces.iter().copied().find(|piece| piece.1 > 0))
    }

    /// Where the byte with this index is.
    fn address_of(&self, mut index: u64) -> Option<u64> {
        if let Some(address) = syscalls::buffer(self.op, &self.args) {
            return address.checked_add(index);
        }
        for &(address, length) in &self.pieces {
            if index < length {
                return address.checked_add(index);
            }
            index -= length;
        }
        None
    }
}

/// Of io_uring_setup(2): the third word of its parameters. Its third argument is free for them.
fn ring_flags(tid: u32, parameters: u64) -> u64 {
    let flags = parameters.checked_add(8).map(|at| ProcessMemory { pid: tid }.bytes(at, 4));
    flags.and_then(|flags| flags.try_into().ok()).map_or(0, u32::from_le_bytes).into()
}

/// Whether a rename is about to take a name from another file: the thread stands still, so its own view can be asked.
fn replaces(tid: u32, op: Op, args: &[u64; 6], paths: &[String]) -> Option<bool> {
    if !matches!(op, Op::Rename | Op::Renameat | Op::Renameat2) {
        return None;
    }
    let (to, under) = (paths.get(1)?, syscalls::paths(op).get(1)?.0);
    let start = match under.map(|argument| args[argument] as i32) {
        _ if to.starts_with('/') => "root".into(),
        None | Some(libc::AT_FDCWD) => "cwd".into(),
        Some(fd) => format!("fd/{fd}"),
    };
    match std::fs::symlink_metadata(format!("/proc/{tid}/{start}/{to}")) {
        Ok(_) => Some(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(false),
        Err(_) => None,
    }
}

/// A call that a signal broke off shows the kernel's own code for "to be restarted"; the program sees EINTR, or
/// the call is made anew.
fn seen_result(result: i64) -> i64 {
    if (-516..=-512).contains(&result) { -i64::from(libc::EINTR) } else { result }
}

fn pieces(memory: &ProcessMemory, op: Op, args: &[u64; 6]) -> Vec<(u64, u64)> {
    let vector = syscalls::vector(op, args).or_else(|| {
        // struct msghdr: msg_iov at 16, msg_iovlen at 24.
        let message = syscalls::message(op, args)?;
        Some((memory.u64(message.checked_add(16)?)?, memory.u64(message.checked_add(24)?)?))
    });
    let Some((address, count)) = vector else { return Vec::new() };
    let bytes = memory.bytes(address, (count.min(IOV_MAX) * 16) as usize);
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    bytes.chunks_exact(16).map(|piece| (word(&piece[..8]), word(&piece[8..]))).collect()
}

/// A C string, read no further than a page at a time: the next one may be missing.
fn string(memory: &ProcessMemory, address: u64) -> String {
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
    String::from_utf8_lossy(&text).into_owned()
}

/// A piece and a single byte behind it, in one call.
fn read_two(tid: u32, piece: (u64, usize), byte: u64, into: &mut [u8; HEAD + 1]) -> usize {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: piece.1 + 1 };
    let remote = [
        libc::iovec { iov_base: piece.0 as *mut libc::c_void, iov_len: piece.1 },
        libc::iovec { iov_base: byte as *mut libc::c_void, iov_len: 1 },
    ];
    // SAFETY: `local` is within `into`, since a piece is at most HEAD long; remote addresses are only read,
    // in the other process, and checked by the kernel.
    let got = unsafe { libc::process_vm_readv(tid as libc::pid_t, &local, 1, remote.as_ptr(), 2, 0) };
    usize::try_from(got).unwrap_or(0)
}
