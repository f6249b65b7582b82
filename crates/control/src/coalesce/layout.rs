//! The layout of the shared memory, as native/preload/arena.h has it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64};

pub const SLOTS: usize = 256;
const MAGIC: u64 = 0x3161_6e65_7261_2e77;
const HEAD_BYTES: usize = 4096;
const OUT_BYTES: usize = 65536;
pub const BYTES: usize = HEAD_BYTES + SLOTS * size_of::<ArenaRegion>();

/// The first page.
#[repr(C)]
pub struct ArenaHeader {
    magic: AtomicU64,
    slots: AtomicU32,
    weir_pid: AtomicU32,
    pub owners: [AtomicU32; SLOTS],
}

impl ArenaHeader {
    pub fn begin(&self, weir_pid: u32) {
        self.weir_pid.store(weir_pid, Relaxed);
        self.slots.store(SLOTS as u32, Relaxed);
        self.magic.store(MAGIC, Release);
    }
}

/// One process's part.
#[repr(C)]
pub struct ArenaRegion {
    pub head: AtomicU64,
    pub drained: AtomicU64,
    pub lock: AtomicU32,
    pub out_fd: AtomicI32,
    pub flight_back: AtomicU64,
    pub flight_done: AtomicU64,
    in_used: AtomicU64,
    in_length: AtomicU64,
    pub in_end: AtomicI64,
    pub in_fd: AtomicI32,
    pub out_limit: AtomicU32,
    rest: [u8; 4096 - 72],
    out: [u8; OUT_BYTES],
}

/// A call in flight when its process died.
pub enum InterruptedCall {
    /// Of gathered bytes.
    Write,
    /// Of bytes ahead.
    Read,
}

impl ArenaRegion {
    /// Bytes that were gathered since it last started over; what a program stores there is not trusted.
    pub fn length(&self) -> u64 {
        (self.head.load(Acquire) & 0xffff_ffff).min(OUT_BYTES as u64)
    }

    /// How many of them are not out.
    pub fn pending(&self) -> u64 {
        self.length().saturating_sub(self.drained.load(Acquire))
    }

    /// The bytes that are not out. They are complete, and their owner only adds behind them.
    pub fn rest(&self) -> Vec<u8> {
        let (from, to) = (self.drained.load(Acquire) as usize, self.length() as usize);
        // SAFETY: `from..to` is within `out`; the owner stores behind `to` only, so these bytes do not change.
        (from..to).map(|at| unsafe { self.out.as_ptr().add(at).read_volatile() }).collect()
    }

    /// Bytes that were read ahead and that the program has not got.
    pub fn unread(&self) -> u64 {
        self.in_length.load(Acquire).saturating_sub(self.in_used.load(Acquire) & 0xffff_ffff)
    }

    /// Notes the call that its owner could not note any more.
    pub fn settle(&self, flight: Option<(InterruptedCall, u64)>) {
        match flight {
            Some((InterruptedCall::Write, bytes)) => drop(self.drained.fetch_add(bytes, Relaxed)),
            Some((InterruptedCall::Read, bytes)) => drop(self.in_length.fetch_add(bytes, Relaxed)),
            None => {}
        }
    }

    /// Nothing is in it any more.
    pub fn clear(&self) {
        self.head.store(0, Relaxed);
        self.drained.store(0, Relaxed);
        self.lock.store(0, Relaxed);
        self.in_length.store(0, Release);
    }
}

/// The memory, for as long as the arena lives.
pub struct ArenaMapping {
    at: *mut u8,
}

// SAFETY: the mapping is this process's as a whole, not a thread's; it goes with its owner.
unsafe impl Send for ArenaMapping {}

impl ArenaMapping {
    pub fn of(file: &OwnedFd) -> io::Result<ArenaMapping> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let fd = file.as_raw_fd();
        // SAFETY: a new mapping at a place of the kernel's choice, of a file whose size is sealed.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, access, libc::MAP_SHARED, fd, 0) };
        if at == libc::MAP_FAILED {
            Err(io::Error::last_os_error())
        } else {
            Ok(ArenaMapping { at: at.cast() })
        }
    }

    pub fn head(&self) -> &ArenaHeader {
        // SAFETY: the mapping begins with it, is page-aligned and lives as long as self; all fields are atomic.
        unsafe { &*self.at.cast() }
    }

    pub fn region(&self, slot: usize) -> &ArenaRegion {
        assert!(slot < SLOTS);
        // SAFETY: within the mapping and page-aligned; `out` is only read through `rest`.
        unsafe { &*self.at.add(HEAD_BYTES + slot * size_of::<ArenaRegion>()).cast() }
    }
}

impl Drop for ArenaMapping {
    fn drop(&mut self) {
        // SAFETY: what `of` has mapped; no reference outlives self.
        unsafe { libc::munmap(self.at.cast(), BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// The C compiler's own answer for arena.h.
    #[test]
    fn c_has_the_same_layout() {
        let dir = tempfile::tempdir().unwrap();
        let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../native/preload/arena.h");
        let text = format!(
            "#include <stddef.h>\n#include <stdio.h>\n#include \"{header}\"\n#define R(f) offsetof(struct weir_region, f)\n\
             int main(void) {{ printf(\"%zu %zu %zu %zu %zu %zu %zu %zu %zu %ju\", offsetof(struct weir_arena, owners),\n\
             R(lock), R(flight_back), R(in_used), R(in_length), R(in_fd), R(out_limit), R(out), \
             sizeof(struct weir_region), (size_t)WEIR_ARENA_BYTES); }}\n"
        );
        std::fs::write(dir.path().join("l.c"), text).unwrap();
        let built =
            std::process::Command::new("cc").args(["-w", "l.c", "-o", "l"]).current_dir(dir.path()).status();
        assert!(built.unwrap().success());
        let said = std::process::Command::new(dir.path().join("l")).output().unwrap().stdout;
        let ours = [
            offset_of!(ArenaHeader, owners),
            offset_of!(ArenaRegion, lock),
            offset_of!(ArenaRegion, flight_back),
            offset_of!(ArenaRegion, in_used),
            offset_of!(ArenaRegion, in_length),
            offset_of!(ArenaRegion, in_fd),
            offset_of!(ArenaRegion, out_limit),
            offset_of!(ArenaRegion, out),
            size_of::<ArenaRegion>(),
            BYTES,
        ];
        assert_eq!(String::from_utf8(said).unwrap(), ours.map(|n| n.to_string()).join(" "));
    }
}
