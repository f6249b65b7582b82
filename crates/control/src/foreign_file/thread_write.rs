//! A stopped thread of the process writes to its own descriptor.

use std::os::fd::BorrowedFd;

use rustix::fs::FileType;
use rustix::io::Errno;
use weir_sys::ptrace::own_calls::{NoResult, OwnCalls};
use weir_sys::{ptrace, syscalls};

use super::WriteOutcome;
use super::late_writes::LateWrite;
use super::sink::Sink;

/// The largest part of a stream that is copied into the process at once, unless it is one message.
const COPY_BYTES: usize = 256 << 10;
const PAGE: usize = 4096;
/// RWF_NOWAIT of pwritev2(2).
const NOWAIT: u64 = 8;

/// The thread, and a mapping in its process: a page for arguments, then the bytes to write.
struct ThreadWriter {
    calls: OwnCalls,
    fd: i32,
    mapping: u64,
    mapped_bytes: u64,
    outcome: WriteOutcome,
    /// The write that has not returned. Its bytes count as written, so that they are never written twice.
    late: Option<LateWrite>,
}

/// Writes as many bytes as the file takes now, by the first of these threads that can; None if none can.
pub(super) fn write(
    tids: &[u32],
    fd: i32,
    file: BorrowedFd,
    sink: &Sink,
    bytes: &[u8],
) -> Option<WriteOutcome> {
    let calls = tids.iter().find_map(|tid| OwnCalls::begin(*tid))?;
    let outcome = WriteOutcome::default();
    let mut writer = ThreadWriter { calls, fd, mapping: 0, mapped_bytes: 0, outcome, late: None };
    // A death shows in the stop at the end.
    let _died_or_late = writer.write_all(file, sink, bytes);
    let late = writer.late;
    let stop = writer.calls.end(move |result| late.into_iter().for_each(|late| late.note_result(result)));
    Some(WriteOutcome { stop, ..writer.outcome })
}

impl ThreadWriter {
    fn write_all(&mut self, file: BorrowedFd, sink: &Sink, bytes: &[u8]) -> Result<(), NoResult> {
        let copied = if sink.kind() == FileType::Socket { bytes.len() } else { bytes.len().min(COPY_BYTES) };
        self.mapped_bytes = (PAGE + copied.next_multiple_of(PAGE)) as u64;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let access = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let mapping = self.calls.call(libc::SYS_mmap, [0, self.mapped_bytes, access, flags, u64::MAX, 0])?;
        if (-4095..0).contains(&mapping) {
            self.outcome.error = Some(errno(mapping).into());
            return Ok(());
        }
        self.mapping = mapping as u64;
        while self.outcome.written < bytes.len() {
            let rest = &bytes[self.outcome.written..];
            let length = match sink.next_length(file, &rest[..rest.len().min(copied)]) {
                Ok(0) => break,
                Ok(length) => length,
                Err(errno) => {
                    self.outcome.error = Some(errno.into());
                    break;
                }
            };
            if !self.write_piece(sink.kind(), &rest[..length])? {
                break;
            }
        }
        self.calls.call(libc::SYS_munmap, [self.mapping, self.mapped_bytes, 0, 0, 0, 0]).map(drop)
    }

    /// Writes one piece. Returns false if no more bytes can be written now.
    fn write_piece(&mut self, kind: FileType, piece: &[u8]) -> Result<bool, NoResult> {
        let (tid, data, length) = (self.calls.tid(), self.mapping + PAGE as u64, piece.len() as u64);
        if !ptrace::write_memory(tid, data, piece) {
            self.outcome.error = Some(Errno::FAULT.into());
            return Ok(false);
        }
        let fd = self.fd as u64;
        let mut result = match kind {
            FileType::Socket => {
                let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as u64;
                self.call(libc::SYS_sendto, [fd, data, length, flags, 0, 0], length)?
            }
            FileType::Fifo => {
                ptrace::write_memory(tid, self.mapping, &[data.to_le_bytes(), length.to_le_bytes()].concat());
                self.call(libc::SYS_pwritev2, [fd, self.mapping, 1, u64::MAX, u64::MAX, NOWAIT], length)?
            }
            _ => self.call(libc::SYS_write, [fd, data, length, 0, 0, 0], length)?,
        };
        let unsupported = [libc::EOPNOTSUPP, libc::ESPIPE, libc::EINVAL];
        if kind == FileType::Fifo && unsupported.iter().any(|errno| result == -i64::from(*errno)) {
            result = self.call(libc::SYS_write, [fd, data, length, 0, 0, 0], length)?;
        }
        self.note(result)
    }

    /// Makes a write of `length` bytes. The bytes of a write that the thread did not survive count too.
    fn call(&mut self, number: i64, args: [u64; 6], length: u64) -> Result<i64, NoResult> {
        let result = self.calls.call(number, args);
        if number != libc::SYS_sendto {
            self.outcome.own_calls += 1;
        }
        match result {
            Err(NoResult::Died(Some(written))) => {
                self.outcome.written += usize::try_from(written).unwrap_or(0);
            }
            Err(NoResult::Late) => {
                self.outcome.written += length as usize;
                self.late = Some(LateWrite::begin(self.calls.tid(), self.fd, length));
            }
            _ => {}
        }
        result
    }

    /// Notes the result of a write. Returns false if it was the last one.
    fn note(&mut self, result: i64) -> Result<bool, NoResult> {
        match result {
            1.. => {
                self.outcome.written += result as usize;
                return Ok(true);
            }
            0 => return Ok(false),
            restart if syscalls::RESTART_CODES.contains(&restart) => return Ok(false),
            _ => {}
        }
        match errno(result) {
            Errno::AGAIN | Errno::INTR => return Ok(false),
            Errno::PIPE => self.discard(libc::SIGPIPE)?,
            Errno::FBIG => self.discard(libc::SIGXFSZ)?,
            _ => {}
        }
        self.outcome.error = Some(errno(result).into());
        Ok(false)
    }

    /// Discards the blocked signal that a failed write has raised: the program has not made this write.
    fn discard(&mut self, signal: i32) -> Result<(), NoResult> {
        // A set of signals, and a struct timespec of zero.
        let set = 1u64 << (signal - 1);
        ptrace::write_memory(self.calls.tid(), self.mapping, &[set.to_le_bytes(), [0; 8], [0; 8]].concat());
        let args = [self.mapping, 0, self.mapping + 8, size_of::<u64>() as u64, 0, 0];
        self.calls.call(libc::SYS_rt_sigtimedwait, args).map(drop)
    }
}

/// Returns the errno of a failed call's result, which is between -4095 and -1.
fn errno(result: i64) -> Errno {
    Errno::from_raw_os_error(-result.clamp(-4095, -1) as i32)
}
