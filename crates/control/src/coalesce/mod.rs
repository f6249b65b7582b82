//! The memory that weir shares with the programs whose tiny calls it gathers: what a kill leaves there is written
//! out, and what is too old. The protocol stands in native/preload/arena.h.

pub(crate) mod handler;
mod layout;
mod writer;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags, SeekFrom};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};

use layout::{ArenaMapping, ArenaRegion, SLOTS};

/// How long a death may wait for a full pipe or socket before its bytes are handed to the caller.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes that were promised and that no file took.
#[derive(Debug)]
pub struct UnwrittenBytes {
    /// The descriptor they were written to, as the process knew it.
    pub fd: i32,
    /// What is left, in order.
    pub bytes: Vec<u8>,
    /// What the file said.
    pub why: io::Error,
}

/// What the end of a process left to do.
#[derive(Debug, Default)]
pub struct ArenaDrain {
    /// Bytes that weir wrote for it.
    pub written: u64,
    /// Bytes that it had read ahead and that a shared file offset got back.
    pub given_back: u64,
    /// What could not be written.
    pub left: Option<UnwrittenBytes>,
}

/// The bytes of a slot that a tick saw waiting.
struct SlotAge {
    bytes: u64,
    since_us: u64,
}

/// The shared memory, and who uses it.
pub struct Arena {
    file: OwnedFd,
    map: ArenaMapping,
    delay_us: u64,
    seen: HashMap<usize, SlotAge>,
}

impl Arena {
    /// A fresh one; bytes wait in it for `delay` at most, as far as [`Arena::tick`] is called.
    pub fn create(delay: Duration) -> io::Result<Arena> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("weir-arena", flags)?;
        rustix::fs::ftruncate(&file, layout::BYTES as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let map = ArenaMapping::of(&file)?;
        map.head().begin(std::process::id());
        Ok(Arena { file, map, delay_us: delay.as_micros() as u64, seen: HashMap::new() })
    }

    /// Where a program finds it, for [`crate::preload::PreloadConfig::coalesce`]; good while this process lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    /// At the exit stop of `pid` (PTRACE_EVENT_EXIT, by the thread that traces it): what it had been promised is
    /// written to the same open files, what it had read ahead is given back, and its slot is free again.
    pub fn drain(&mut self, pid: u32) -> io::Result<ArenaDrain> {
        let mut drained = ArenaDrain::default();
        for slot in self.slots_of(pid) {
            let region = self.map.region(slot);
            let process = open(pid)?;
            region.settle(flight(pid, region));
            drained.given_back += give_back(&process, region)?;
            if region.pending() > 0 {
                let sink = writer::of(&process, region.out_fd.load(Relaxed))?;
                let most = writer::allowance(pid, &sink)?;
                let (written, error) = writer::write(&sink, region, most, PATIENCE);
                drained.written += written;
                drained.left = error.map(|why| UnwrittenBytes {
                    fd: region.out_fd.load(Relaxed),
                    bytes: region.rest(),
                    why,
                });
            }
            self.free(slot);
        }
        Ok(drained)
    }

    /// Writes out what has waited longer than the delay in programs that make no calls of their own. Never waits: a
    /// sink without room is looked at again in the next tick. Returns the bytes written.
    pub fn tick(&mut self, now_us: u64) -> u64 {
        let mut written = 0;
        for slot in 0..SLOTS {
            let owner = self.map.head().owners[slot].load(Acquire);
            if owner != 0 && self.too_old(slot, now_us) {
                written += self.take_out(slot, owner);
            }
        }
        written
    }

    fn too_old(&mut self, slot: usize, now_us: u64) -> bool {
        let bytes = self.map.region(slot).length();
        if self.map.region(slot).pending() == 0 {
            self.seen.remove(&slot);
            return false;
        }
        let seen = self.seen.entry(slot).or_insert(SlotAge { bytes, since_us: now_us });
        if bytes < seen.bytes {
            *seen = SlotAge { bytes, since_us: now_us }; // it has started over: these are younger
        }
        now_us - seen.since_us >= self.delay_us
    }

    /// An error is the program's to find: it meets it at its own flush.
    fn take_out(&mut self, slot: usize, owner: u32) -> u64 {
        let region = self.map.region(slot);
        let me = std::process::id();
        if region.lock.compare_exchange(0, me, AcqRel, Relaxed).is_err() {
            return 0;
        }
        let written = push(owner, region).unwrap_or(0);
        region.lock.store(0, Release);
        if region.pending() == 0 {
            self.seen.remove(&slot);
        }
        written
    }

    fn slots_of(&self, pid: u32) -> Vec<usize> {
        (0..SLOTS).filter(|slot| self.map.head().owners[*slot].load(Acquire) == pid).collect()
    }

    fn free(&mut self, slot: usize) {
        self.map.region(slot).clear();
        self.map.head().owners[slot].store(0, Release);
        self.seen.remove(&slot);
    }
}

fn open(pid: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
}

/// What goes out at once; under the region's lock.
fn push(owner: u32, region: &ArenaRegion) -> io::Result<u64> {
    let sink = writer::of(&open(owner)?, region.out_fd.load(Relaxed))?;
    let most = writer::allowance(owner, &sink)?;
    Ok(writer::write(&sink, region, most, Duration::ZERO).0)
}

/// The result of a read or write of the region that the kernel has made and the process could not note any more.
#[cfg(target_arch = "x86_64")]
fn flight(pid: u32, region: &ArenaRegion) -> Option<(layout::InterruptedCall, u64)> {
    // SAFETY: all zero is a value of user_regs_struct, and ptrace writes nothing else.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    // SAFETY: the fourth argument is such a struct, as PTRACE_GETREGS wants.
    let got = unsafe { libc::ptrace(libc::PTRACE_GETREGS, pid as i32, 0, &raw mut registers) };
    let within = region.flight_back.load(Relaxed)..region.flight_done.load(Relaxed);
    if got != 0 || !within.contains(&registers.rip) {
        return None;
    }
    let result = u64::try_from(registers.rax as i64).ok()?;
    match registers.orig_rax as i64 {
        libc::SYS_write => Some((layout::InterruptedCall::Write, result)),
        libc::SYS_read => Some((layout::InterruptedCall::Read, result)),
        _ => None,
    }
}

/// Nothing is gathered on other machines.
#[cfg(not(target_arch = "x86_64"))]
fn flight(_pid: u32, _region: &ArenaRegion) -> Option<(layout::InterruptedCall, u64)> {
    None
}

/// Sets a file's offset back to what the program has got, unless somebody else has moved it.
fn give_back(process: &OwnedFd, region: &ArenaRegion) -> io::Result<u64> {
    let unread = region.unread();
    if unread == 0 {
        return Ok(0);
    }
    let file = rustix::process::pidfd_getfd(process, region.in_fd.load(Relaxed), PidfdGetfdFlags::empty())?;
    let (end, here) = (region.in_end.load(Relaxed), rustix::fs::tell(&file)?);
    if end >= 0 && here != end as u64 {
        return Ok(0);
    }
    rustix::fs::seek(&file, SeekFrom::Current(-(unread as i64)))?;
    Ok(unread)
}
