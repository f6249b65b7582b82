//! The layout of the arena, which native/preload/arena.h defines. A test compares both.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, fence};
use std::time::Duration;

const SLOTS: usize = 256;
const MAGIC: u64 = 0x3161_6e65_7261_2e77;
const HEAD_BYTES: usize = 4096;
const OUT_BYTES: usize = 65536;
const PAGE_BYTES: usize = 4096;
pub const BYTES: usize = HEAD_BYTES + SLOTS * size_of::<ArenaRegion>();

/// The arena's first page.
#[repr(C)]
pub struct ArenaHeader {
    magic: AtomicU64,
    slots: AtomicU32,
    weir_pid: AtomicU32,
    pub owners: [AtomicU32; SLOTS],
}

impl ArenaHeader {
    pub fn initialize(&self, weir_pid: u32) {
        self.weir_pid.store(weir_pid, Relaxed);
        self.slots.store(SLOTS as u32, Relaxed);
        self.magic.store(MAGIC, Release);
    }
}

/// One process's part of the arena. arena.h explains the fields.
#[repr(C)]
pub struct ArenaRegion {
    pub head: AtomicU64,
    pub drained: AtomicU64,
    pub lock: AtomicU32,
    pub out_fd: AtomicI32,
    pub unnoted_begin: AtomicU64,
    pub unnoted_end: AtomicU64,
    in_used: AtomicU64,
    in_length: AtomicU64,
    pub in_end: AtomicI64,
    pub in_fd: AtomicI32,
    pub out_limit: AtomicU32,
    late_errors: AtomicU32,
    late_error: AtomicI32,
    closed: AtomicU32,
    padding: [u8; 4096 - 84],
    out: [u8; OUT_BYTES],
}

/// A call whose result a dying process could not note.
pub enum InterruptedCall {
    /// A write of gathered bytes.
    Write,
    /// A read into the read-ahead buffer.
    Read,
}

impl InterruptedCall {
    /// Returns the call that adds its result to the counter at this address of a process. Regions begin at a page.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub fn of_counter(address: u64) -> Option<InterruptedCall> {
        match address as usize % PAGE_BYTES {
            at if at == offset_of!(ArenaRegion, drained) => Some(InterruptedCall::Write),
            at if at == offset_of!(ArenaRegion, in_length) => Some(InterruptedCall::Read),
            _ => None,
        }
    }
}

impl ArenaRegion {
    /// Returns the bytes that were gathered since the region started over, clamped: the program may store any value.
    pub fn length(&self) -> u64 {
        (self.head.load(Acquire) & 0xffff_ffff).min(OUT_BYTES as u64)
    }

    /// Returns the number of gathered bytes that are not written.
    pub fn pending_len(&self) -> u64 {
        self.length().saturating_sub(self.drained.load(Acquire))
    }

    /// Returns the gathered bytes that are not written. They are complete, and their owner only appends.
    pub fn pending_bytes(&self) -> Vec<u8> {
        let (from, to) = (self.drained.load(Acquire) as usize, self.length() as usize);
        // SAFETY: `from..to` is within `out`; the owner stores only from `to` on, so these bytes do not change.
        (from..to).map(|at| unsafe { self.out.as_ptr().add(at).read_volatile() }).collect()
    }

    /// Returns the number of read-ahead bytes that the program has not read.
    pub fn unread_len(&self) -> u64 {
        self.in_length.load(Acquire).saturating_sub(self.in_used.load(Acquire) & 0xffff_ffff)
    }

    /// Returns the error of the last failed write, if the program has not got every such error.
    pub fn unreported_error(&self) -> Option<io::Error> {
        let error = || io::Error::from_raw_os_error(self.late_error.load(Relaxed));
        (self.late_errors.load(Acquire) > 0).then(error)
    }

    /// Notes a call that the owner could not note.
    pub fn complete(&self, call: Option<(InterruptedCall, u64)>) {
        match call {
            Some((InterruptedCall::Write, bytes)) => drop(self.drained.fetch_add(bytes, Relaxed)),
            Some((InterruptedCall::Read, bytes)) => drop(self.in_length.fetch_add(bytes, Relaxed)),
            None => {}
        }
    }

    /// Notes that all calls of a dead owner are complete and its read-ahead bytes returned: a second drain does neither again.
    pub fn settle_calls(&self) {
        self.unnoted_end.store(0, Relaxed);
        self.in_length.store(0, Relaxed);
    }

    /// Empties the region for its next owner.
    pub fn clear(&self) {
        self.head.store(0, Relaxed);
        self.drained.store(0, Relaxed);
        self.lock.store(0, Relaxed);
        self.late_errors.store(0, Relaxed);
        self.in_length.store(0, Release);
    }
}

/// The mapped arena. Dropping it unmaps the memory.
pub struct ArenaMapping {
    base: *mut u8,
}

// SAFETY: a mapping belongs to the process, not to a thread, and its fields are atomic.
unsafe impl Send for ArenaMapping {}

impl ArenaMapping {
    pub fn new(file: &OwnedFd) -> io::Result<ArenaMapping> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let fd = file.as_raw_fd();
        // SAFETY: the kernel chooses the address, and the size of the file is sealed.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, access, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(ArenaMapping { base: base.cast() })
    }

    pub fn header(&self) -> &ArenaHeader {
        // SAFETY: the page-aligned mapping begins with the header and lives as long as self; all fields are atomic.
        unsafe { &*self.base.cast() }
    }

    pub fn region(&self, slot: usize) -> &ArenaRegion {
        assert!(slot < SLOTS);
        // SAFETY: the region is within the mapping and page-aligned; only `pending_bytes` reads `out`.
        unsafe { &*self.base.add(HEAD_BYTES + slot * size_of::<ArenaRegion>()).cast() }
    }
}

impl ArenaMapping {
    /// Closes all regions. The caller must then write what is pending: arena.h has the proof that no byte is lost.
    pub fn close(&self) {
        (0..SLOTS).for_each(|slot| self.region(slot).closed.store(1, Relaxed));
        // A process that claims a slot after this check sees the stores.
        fence(SeqCst);
        if self.header().owners.iter().any(|owner| owner.load(Acquire) != 0) {
            await_stores();
        }
    }
}

/// Waits until the stores that all processors have made are visible.
fn await_stores() {
    /// MEMBARRIER_CMD_GLOBAL of linux/membarrier.h.
    const GLOBAL: i32 = 1;
    /// The time in which a processor empties its store buffer by itself, a thousandfold.
    const PAUSE: Duration = Duration::from_millis(1);
    // SAFETY: the call takes numbers.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) };
    // Some kernels (nohz_full) and seccomp filters refuse the call.
    if result != 0 {
        std::thread::sleep(PAUSE);
    }
}

impl Drop for ArenaMapping {
    fn drop(&mut self) {
        // SAFETY: `new` has mapped these bytes, and no reference outlives self.
        unsafe { libc::munmap(self.base.cast(), BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the offsets with those that the C compiler has for arena.h.
    #[test]
    fn the_layout_is_that_of_arena_h() {
        let dir = tempfile::tempdir().unwrap();
        let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../native/preload/arena.h");
        let text = format!(
            "#include <stddef.h>\n#include <stdio.h>\n#include \"{header}\"\n#define R(f) offsetof(struct weir_region, f)\n\
             int main(void) {{ printf(\"%zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %ju\", offsetof(struct weir_arena, owners),\n\
             R(lock), R(unnoted_begin), R(in_used), R(in_length), R(in_fd), R(out_limit), R(closed), R(out), \
             sizeof(struct weir_region), (size_t)WEIR_ARENA_BYTES); }}\n"
        );
        std::fs::write(dir.path().join("l.c"), text).unwrap();
        let built =
            std::process::Command::new("cc").args(["-w", "l.c", "-o", "l"]).current_dir(dir.path()).status();
        assert!(built.unwrap().success());
        let printed = std::process::Command::new(dir.path().join("l")).output().unwrap().stdout;
        let expected = [
            offset_of!(ArenaHeader, owners),
            offset_of!(ArenaRegion, lock),
            offset_of!(ArenaRegion, unnoted_begin),
            offset_of!(ArenaRegion, in_used),
            offset_of!(ArenaRegion, in_length),
            offset_of!(ArenaRegion, in_fd),
            offset_of!(ArenaRegion, out_limit),
            offset_of!(ArenaRegion, closed),
            offset_of!(ArenaRegion, out),
            size_of::<ArenaRegion>(),
            BYTES,
        ];
        assert_eq!(String::from_utf8(printed).unwrap(), expected.map(|n| n.to_string()).join(" "));
    }
}
