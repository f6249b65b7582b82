//! The drain of a region whose process is in its exit stop.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::SeekFrom;
use weir_sys::foreign_descriptors::duplicate;
use weir_sys::process_identity::ProcessIdentity;

use super::layout::{self, ArenaRegion};
use super::write_pending;

/// MAX_READ_AHEAD of gather.h. A program can store any number.
const MAX_READ_AHEAD: u64 = 65536;

/// Gathered bytes that their file did not take.
#[derive(Debug)]
pub struct UnwrittenBytes {
    /// The descriptor in the process.
    pub fd: i32,
    #[allow(missing_docs)]
    pub bytes: Vec<u8>,
    /// The error of the write.
    pub why: io::Error,
}

/// The result of draining a process at its exit.
#[derive(Debug, Default)]
pub struct ArenaDrain {
    /// Gathered bytes that weir wrote.
    pub written: u64,
    /// Read-ahead bytes by which weir moved the file's offset back.
    pub returned: u64,
    /// Gathered bytes that weir could not write.
    pub left: Option<UnwrittenBytes>,
    /// Why weir could not move the offset back.
    pub unreturned: Option<io::Error>,
    /// The error of a write of gathered bytes, which no call of the program has returned.
    pub unreported: Option<io::Error>,
}

/// Drains the region of a process in its exit stop, as [`super::Arena::drain`], as far as possible without waiting. Returns whether a full
/// pipe or socket keeps bytes; the function may then be called again.
pub(super) fn drain_region(pid: u32, region: &ArenaRegion, drained: &mut ArenaDrain) -> bool {
    region.complete(interrupted_call(pid, region));
    match return_read_ahead(pid, region) {
        Ok(bytes) => drained.returned += bytes,
        Err(error) => drained.unreturned = Some(error),
    }
    region.settle_calls();
    if region.pending_len() == 0 {
        return false;
    }
    let (written, error) = write_pending(ProcessIdentity::of(pid), region);
    drained.written += written;
    let is_full = error.as_ref().is_some_and(|error| error.raw_os_error() == Some(libc::EAGAIN));
    if let Some(why) = error {
        let (fd, bytes) = (region.out_fd.load(Relaxed), region.pending_bytes());
        drained.left = Some(UnwrittenBytes { fd, bytes, why });
    }
    is_full
}

/// Returns the read or write that the kernel has made for the region, and that the dying process could not note.
///
/// Register r8 of weir_counted_call holds the address of the counter, which distinguishes a write from a read. The system call's
/// number does not: if an interrupt stopped the process after the call, as the signal itself mostly does, orig_rax is -1.
#[cfg(target_arch = "x86_64")]
fn interrupted_call(pid: u32, region: &ArenaRegion) -> Option<(layout::InterruptedCall, u64)> {
    // SAFETY: zero is a valid value of every field of user_regs_struct.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    // SAFETY: PTRACE_GETREGS fills the struct in the fourth argument.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETREGS, pid as i32, 0, &raw mut registers) };
    let unnoted = region.unnoted_begin.load(Relaxed)..region.unnoted_end.load(Relaxed);
    if result != 0 || !unnoted.contains(&registers.rip) {
        return None;
    }
    let bytes = u64::try_from(registers.rax as i64).ok()?;
    layout::InterruptedCall::of_counter(registers.r8).map(|call| (call, bytes))
}

/// Returns None: other architectures gather no calls.
#[cfg(not(target_arch = "x86_64"))]
fn interrupted_call(_pid: u32, _region: &ArenaRegion) -> Option<(layout::InterruptedCall, u64)> {
    None
}

/// Moves a file's offset back by the bytes that the program has not read, unless the program itself has just done so. Fails if
/// another process has moved it.
fn return_read_ahead(pid: u32, region: &ArenaRegion) -> io::Result<u64> {
    let unread = region.unread_len();
    if unread == 0 {
        return Ok(0);
    }
    if unread > MAX_READ_AHEAD {
        return Err(io::Error::other("the process has changed their number"));
    }
    let file = duplicate(pid, region.in_fd.load(Relaxed))?;
    let (end, offset) = (region.in_end.load(Relaxed), rustix::fs::tell(&file)?);
    // The program was killed after it had moved the offset, and before it noted that.
    if end >= 0 && offset.checked_add(unread) == Some(end as u64) {
        return Ok(0);
    }
    if end >= 0 && offset != end as u64 {
        return Err(io::Error::other("another process has moved it"));
    }
    rustix::fs::seek(&file, SeekFrom::Current(-(unread as i64)))?;
    Ok(unread)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};
    use std::os::fd::AsRawFd;
    use std::time::Duration;

    use super::super::Arena;
    use super::layout::InterruptedCall;
    use super::*;

    #[test]
    fn an_offset_is_moved_back_once() {
        let arena = Arena::create(Duration::from_secs(1)).expect("an arena");
        let region = arena.map.region(0);
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&[b'x'; 100]).expect("a write");
        region.in_fd.store(file.as_raw_fd(), Relaxed);
        region.in_end.store(60, Relaxed);
        region.complete(Some((InterruptedCall::Read, 40)));
        let mut returned_from = |offset| {
            file.seek(SeekFrom::Start(offset)).expect("a seek");
            let returned = return_read_ahead(std::process::id(), region).map_err(|error| error.to_string());
            (returned, file.stream_position().expect("an offset"))
        };
        assert_eq!(returned_from(60), (Ok(40), 20));
        assert_eq!(returned_from(20), (Ok(0), 20), "the program had moved it");
        assert_eq!(returned_from(30), (Err("another process has moved it".into()), 30));
        region.complete(Some((InterruptedCall::Read, (1 << 63) - 40)));
        assert_eq!(returned_from(60), (Err("the process has changed their number".into()), 60));
    }
}
