//! The arena: memory that weir shares with the programs whose tiny calls it gathers.
//!
//! Weir writes the bytes that a dead process leaves in the arena, and those that are too old. native/preload/arena.h
//! defines the protocol.

pub(crate) mod handler;
mod layout;
pub(crate) mod ticker;
mod writer;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags, SeekFrom};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};
use weir_sys::proc;

use layout::{ArenaMapping, ArenaRegion, SLOTS};

/// The longest wait for a full pipe or socket at an exit: short for a user who waits for the command's end.
const EXIT_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

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
}

/// The time since which a region has had pending bytes.
struct SlotAge {
    /// The region's length then. A smaller length later shows that the region has started over.
    length: u64,
    since_us: u64,
}

/// The shared memory and the age of its pending bytes.
pub struct Arena {
    file: OwnedFd,
    map: ArenaMapping,
    delay_us: u64,
    ages: HashMap<usize, SlotAge>,
}

impl Arena {
    /// Creates an arena. Bytes stay in it for at most `delay` if [`Arena::tick`] is called often enough.
    pub fn create(delay: Duration) -> io::Result<Arena> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("weir-arena", flags)?;
        rustix::fs::ftruncate(&file, layout::BYTES as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let map = ArenaMapping::new(&file)?;
        map.header().initialize(std::process::id());
        Ok(Arena { file, map, delay_us: delay.as_micros() as u64, ages: HashMap::new() })
    }

    /// Returns the arena's path for [`crate::preload::PreloadConfig::coalesce`]. It is valid while weir lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    /// Drains the regions of `pid`, which must be in its exit stop under the calling thread. Writes its gathered bytes
    /// to their open files, moves offsets back by its read-ahead bytes, and frees its slots.
    pub fn drain(&mut self, pid: u32) -> io::Result<ArenaDrain> {
        let mut drained = ArenaDrain::default();
        for slot in self.slots_of(pid) {
            let region = self.map.region(slot);
            let process = open_pidfd(pid)?;
            region.complete(interrupted_call(pid, region));
            drained.returned += return_read_ahead(&process, region)?;
            if region.pending_len() > 0 {
                let file = writer::open(&process, region.out_fd.load(Relaxed))?;
                let most = writer::size_limit(pid, &file)?;
                let (written, error) = writer::write(&file, region, most, EXIT_WRITE_TIMEOUT);
                drained.written += written;
                drained.left = error.map(|why| UnwrittenBytes {
                    fd: region.out_fd.load(Relaxed),
                    bytes: region.pending_bytes(),
                    why,
                });
            }
            self.free(slot);
        }
        Ok(drained)
    }

    /// Writes bytes that are older than the delay, for programs that make no call meanwhile. Never blocks: the next
    /// tick tries a full pipe again. Returns the number of bytes written.
    pub fn tick(&mut self, now_us: u64) -> u64 {
        let mut written = 0;
        for slot in 0..SLOTS {
            let owner = self.map.header().owners[slot].load(Acquire);
            if owner != 0 && self.is_due(slot, now_us) {
                written += self.write_due(slot, owner);
            }
        }
        written
    }

    /// Frees the slots of processes that have ended. Returns a sentence for each that died with gathered bytes: without an
    /// exit stop nothing can write them.
    pub fn free_ended(&mut self) -> Vec<String> {
        let mut losses = Vec::new();
        for slot in 0..SLOTS {
            let owner = self.map.header().owners[slot].load(Acquire);
            if owner == 0 || is_alive(owner) {
                continue;
            }
            let lost = self.map.region(slot).pending_len();
            if lost > 0 {
                losses.push(format!("{lost} gathered bytes of process {owner} are lost: it was killed"));
            }
            self.free(slot);
        }
        losses
    }

    fn is_due(&mut self, slot: usize, now_us: u64) -> bool {
        let length = self.map.region(slot).length();
        if self.map.region(slot).pending_len() == 0 {
            self.ages.remove(&slot);
            return false;
        }
        let age = self.ages.entry(slot).or_insert(SlotAge { length, since_us: now_us });
        if length < age.length {
            *age = SlotAge { length, since_us: now_us };
        }
        now_us - age.since_us >= self.delay_us
    }

    /// Writes a region's bytes. An error is ignored: the program's own flush meets it again.
    fn write_due(&mut self, slot: usize, owner: u32) -> u64 {
        let region = self.map.region(slot);
        let own_pid = std::process::id();
        if region.lock.compare_exchange(0, own_pid, AcqRel, Relaxed).is_err() {
            return 0;
        }
        let written = write_available(owner, region).unwrap_or(0);
        region.lock.store(0, Release);
        if region.pending_len() == 0 {
            self.ages.remove(&slot);
        }
        written
    }

    fn slots_of(&self, pid: u32) -> Vec<usize> {
        (0..SLOTS).filter(|slot| self.map.header().owners[*slot].load(Acquire) == pid).collect()
    }

    fn free(&mut self, slot: usize) {
        self.map.region(slot).clear();
        self.map.header().owners[slot].store(0, Release);
        self.ages.remove(&slot);
    }
}

/// Tells whether a process still has its memory and descriptors.
fn is_alive(pid: u32) -> bool {
    proc::status(pid).is_some_and(|status| !status.state.starts_with(['Z', 'X']))
}

fn open_pidfd(pid: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
}

/// Writes as many bytes as fit now. The caller holds the region's lock.
fn write_available(owner: u32, region: &ArenaRegion) -> io::Result<u64> {
    let file = writer::open(&open_pidfd(owner)?, region.out_fd.load(Relaxed))?;
    let most = writer::size_limit(owner, &file)?;
    Ok(writer::write(&file, region, most, Duration::ZERO).0)
}

/// Returns the read or write that the kernel has made for the region, and that the dying process could not note.
///
/// Register r8 of weir_counted_call holds the address of the counter, which tells a write from a read. The system call's
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

/// Moves a file's offset back by the bytes that the program has not read, unless another process has moved it.
fn return_read_ahead(process: &OwnedFd, region: &ArenaRegion) -> io::Result<u64> {
    let unread = region.unread_len();
    if unread == 0 {
        return Ok(0);
    }
    let file = rustix::process::pidfd_getfd(process, region.in_fd.load(Relaxed), PidfdGetfdFlags::empty())?;
    let (end, offset) = (region.in_end.load(Relaxed), rustix::fs::tell(&file)?);
    if end >= 0 && offset != end as u64 {
        return Ok(0);
    }
    rustix::fs::seek(&file, SeekFrom::Current(-(unread as i64)))?;
    Ok(unread)
}
