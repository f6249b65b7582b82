//! The arena: memory that weir shares with the programs whose tiny calls it gathers.
//!
//! Weir writes the bytes that a dead process leaves in the arena, and those that are too old. native/preload/arena.h
//! defines the protocol.

mod exit_drain;
pub(crate) mod handler;
mod layout;
mod shared_memory;
pub(crate) mod ticker;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use weir_sys::proc;
use weir_sys::process_identity::ProcessIdentity;

use crate::foreign_file::{ForeignFile, ForeignFileError, TargetThread};
use exit_drain::drain_region;
pub use exit_drain::{ArenaDrain, UnwrittenBytes};
use layout::{ArenaMapping, ArenaRegion};

/// The longest wait for a full pipe or socket at an exit: short for a user who waits for the command's end.
pub(crate) const EXIT_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

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
    /// Device and inode of `file`.
    identity: (u64, u64),
    delay_us: u64,
    ages: HashMap<usize, SlotAge>,
}

impl Arena {
    /// Creates an arena. Bytes stay in it for at most `delay` if [`Arena::tick`] is called often enough. Fails if the kernel
    /// gives no memory, or with EFBIG: see RLIMIT_FSIZE in setrlimit(2).
    pub fn create(delay: Duration) -> io::Result<Arena> {
        let file = shared_memory::create(layout::BYTES as u64)?;
        let map = ArenaMapping::new(&file)?;
        map.header().initialize(std::process::id());
        let stat = rustix::fs::fstat(&file)?;
        let identity = (stat.st_dev, stat.st_ino);
        Ok(Arena { file, map, identity, delay_us: delay.as_micros() as u64, ages: HashMap::new() })
    }

    /// Returns the arena's path for [`crate::preload::PreloadConfig::coalesce`]. It is valid while weir lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    /// Drains the regions of `pid`, which must be in its exit stop under the calling thread. Writes its gathered bytes
    /// to their open files, moves offsets back by its read-ahead bytes, and frees its slots. The bytes of a slot that has the
    /// number of `pid` by mistake are of another process, and are not written. Waits for the reader of a full pipe.
    pub fn drain(&mut self, pid: u32) -> ArenaDrain {
        const PAUSE: Duration = Duration::from_millis(1);
        let (mut drained, deadline) = (ArenaDrain::default(), Instant::now() + EXIT_WRITE_TIMEOUT);
        while !self.advance_drain(pid, &mut drained, Instant::now() >= deadline) {
            std::thread::sleep(PAUSE);
        }
        drained
    }

    /// Goes on with [`Arena::drain`] as far as possible without waiting. Returns whether it is finished, which it always is with `is_last`.
    pub(crate) fn advance_drain(&mut self, pid: u32, drained: &mut ArenaDrain, is_last: bool) -> bool {
        let mut is_finished = true;
        drained.left = None;
        for (slot, _) in self.owned_slots().into_iter().filter(|(_, owner)| *owner == pid) {
            let region = self.map.region(slot);
            let is_full = maps_arena(pid, self.identity) && drain_region(pid, region, drained);
            if is_full && !is_last {
                is_finished = false;
                continue;
            }
            drained.unreported = drained.unreported.take().or(region.unreported_error());
            self.free(slot);
        }
        is_finished
    }

    /// Writes bytes that are older than the delay, for programs that make no call meanwhile. Never blocks: the next
    /// tick tries a full pipe again. `now_us` is the time in microseconds on a clock that all ticks share and that never goes
    /// back. Returns the number of bytes written.
    pub fn tick(&mut self, now_us: u64) -> u64 {
        let mut written = 0;
        for (slot, owner) in self.owned_slots() {
            if self.is_due(slot, now_us) {
                written += self.write_due(slot, owner);
            }
        }
        written
    }

    /// Ends the gathering, because weir ends: writes all pending bytes as [`Arena::tick`] does. The processes that live write
    /// later ones at once. Returns the number of bytes written.
    pub fn close(&mut self) -> u64 {
        self.map.close();
        let mut written = 0;
        for (slot, owner) in self.owned_slots() {
            if self.map.region(slot).pending_len() > 0 {
                written += self.write_due(slot, owner);
            }
        }
        written
    }

    /// Frees the slots of processes that have ended, except those of which `has_exit_stop` is true, which are drained there. Returns a
    /// sentence for each that died with gathered bytes, because without an exit stop nothing can write them, and for each that has
    /// not got an error.
    pub fn free_ended(&mut self, has_exit_stop: impl Fn(u32) -> bool) -> Vec<String> {
        let mut losses = Vec::new();
        for (slot, owner) in self.owned_slots() {
            if has_exit_stop(owner) || is_alive(owner) {
                continue;
            }
            let lost = self.map.region(slot).pending_len();
            if lost > 0 {
                losses.push(format!("{lost} gathered bytes of process {owner} are lost: it was killed"));
            }
            losses.extend(
                self.map.region(slot).unreported_error().map(|why| unreported(&format!("{owner}"), &why)),
            );
            self.free(slot);
        }
        losses
    }

    /// Returns whether the next tick would write the bytes too late. With an interval of a quarter of the delay, a byte is stored up to
    /// a quarter before the tick that sees it, and a tick can be late by a quarter.
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
        now_us - age.since_us >= self.delay_us / 2
    }

    /// Writes a region's bytes. An error is ignored: the program's own flush meets it again.
    fn write_due(&mut self, slot: usize, owner: u32) -> u64 {
        let region = self.map.region(slot);
        let own_pid = std::process::id();
        if region.lock.compare_exchange(0, own_pid, AcqRel, Relaxed).is_err() {
            return 0;
        }
        let process = ProcessIdentity::of(owner);
        // The owner may have emptied the region since `is_due`. It then needs no lock to begin with another descriptor.
        let is_pending = region.pending_len() > 0;
        let written = match is_pending && maps_arena(owner, self.identity) {
            true => write_pending(process, region).0,
            false => 0,
        };
        region.lock.store(0, Release);
        if region.pending_len() == 0 {
            self.ages.remove(&slot);
        }
        written
    }

    /// Returns the slots that processes have claimed, with their owners.
    fn owned_slots(&self) -> Vec<(usize, u32)> {
        let owners = self.map.header().owners.iter().map(|owner| owner.load(Acquire));
        owners.enumerate().filter(|(_, owner)| *owner != 0).collect()
    }

    fn free(&mut self, slot: usize) {
        self.map.region(slot).clear();
        self.map.header().owners[slot].store(0, Release);
        self.ages.remove(&slot);
    }
}

/// Returns a sentence about an error that the program could not get.
fn unreported(process: &str, why: &io::Error) -> String {
    let why = weir_sys::error::errno_text(why);
    format!(
        "a write of gathered bytes of process {process} failed, the bytes are lost, and no call of the program has returned the error: {why}"
    )
}

/// Returns whether a process still has its memory and descriptors.
fn is_alive(pid: u32) -> bool {
    proc::status(pid).is_some_and(|status| !status.state.starts_with(['Z', 'X']))
}

/// Writes pending bytes of a region without waiting, and notes each piece at once. Returns the number of bytes written, and an error
/// if bytes are left: EAGAIN for a full pipe. The caller holds the region's lock, or its owner is dead.
fn write_pending(owner: ProcessIdentity, region: &ArenaRegion) -> (u64, Option<io::Error>) {
    let thread = TargetThread::new(owner.pid());
    let file = match ForeignFile::open(&thread, region.out_fd.load(Relaxed), &[]) {
        Ok(file) => file,
        Err(ForeignFileError::Open(error)) => return (0, Some(error)),
        Err(error) => return (0, Some(io::Error::other(error))),
    };
    // The descriptor and the identity of its owner were found by the number.
    if !owner.is_current() {
        return (0, Some(io::Error::from_raw_os_error(libc::ESRCH)));
    }
    let mut written = 0;
    loop {
        let mut bytes = region.pending_bytes();
        if bytes.is_empty() {
            return (written, None);
        }
        bytes.truncate(region.out_limit.load(Relaxed).max(1) as usize);
        let outcome = file.write_available(&bytes);
        region.drained.fetch_add(outcome.written as u64, Release);
        written += outcome.written as u64;
        match outcome.error {
            Some(error) => return (written, Some(error)),
            None if outcome.written > 0 => {}
            None => return (written, Some(rustix::io::Errno::AGAIN.into())),
        }
    }
}

/// Returns whether a process maps the arena. Each process of the command can write any PID into the table of owners. The bytes of
/// a region must not go to the descriptors of a process that gathers nothing.
fn maps_arena(pid: u32, (device, inode): (u64, u64)) -> bool {
    let wanted = format!("{:02x}:{:02x} {inode}", rustix::fs::major(device), rustix::fs::minor(device));
    let maps = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.split(|byte| *byte == b'\n').any(|line| {
        let fields = line.split(|byte| *byte == b' ').skip(3).take(2);
        fields.collect::<Vec<_>>().join(&b' ') == wanted.as_bytes()
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn bytes_are_due_within_the_delay() {
        let mut arena = Arena::create(Duration::from_micros(400)).expect("an arena");
        // A program stores the bytes right after the tick at 0.
        arena.map.region(0).head.store(1 << 32 | 5, Relaxed);
        assert_eq!([100, 200, 300].map(|now_us| arena.is_due(0, now_us)), [false, false, true]);
    }

    /// The table of owners can name a process that gathers nothing, after the reuse of its number.
    #[test]
    fn the_bytes_of_another_process_are_not_written() {
        let (mut arena, out) =
            (Arena::create(Duration::from_secs(1)).expect("an arena"), tempfile::NamedTempFile::new());
        let out = out.expect("a file");
        let mut command = std::process::Command::new("sleep");
        command.arg("60").stdout(out.reopen().expect("the file"));
        let mut victim = command.spawn().expect("sleep");
        let region = arena.map.region(0);
        region.out_fd.store(1, Relaxed);
        region.out_limit.store(100, Relaxed);
        region.head.store(1 << 32 | 5, Relaxed);
        arena.map.header().owners[0].store(victim.id(), Relaxed);
        let drained = arena.drain(victim.id());
        victim.kill().and_then(|()| victim.wait()).expect("its end");
        assert!(drained.written == 0 && drained.left.is_none(), "{drained:?}");
        assert_eq!(std::fs::read(out.path()).expect("the file"), b"");
        assert!(arena.owned_slots().is_empty());
    }

    /// The reader of the pipe can be another process that waits for weir.
    #[test]
    fn a_drain_does_not_wait_for_a_full_pipe() {
        let (mut arena, pid) = (Arena::create(Duration::from_secs(1)).expect("an arena"), std::process::id());
        let (mut from, mut to) = std::io::pipe().expect("a pipe");
        rustix::io::ioctl_fionbio(&to, true).expect("its flags");
        while to.write(&[b'-'; 4096]).is_ok() {}
        let region = arena.map.region(0);
        region.out_fd.store(to.as_raw_fd(), Relaxed);
        region.out_limit.store(4096, Relaxed);
        region.head.store(1 << 32 | 5, Relaxed);
        arena.map.header().owners[0].store(pid, Relaxed);
        let mut drained = ArenaDrain::default();
        let begun = Instant::now();
        assert!(!arena.advance_drain(pid, &mut drained, false), "{drained:?}");
        assert!(begun.elapsed() < EXIT_WRITE_TIMEOUT / 2, "it waits");
        from.read_exact(&mut [0; 4096]).expect("bytes");
        assert!(arena.advance_drain(pid, &mut drained, false), "{drained:?}");
        assert!(drained.written == 5 && drained.left.is_none(), "{drained:?}");
        assert!(arena.owned_slots().is_empty());
    }
}
