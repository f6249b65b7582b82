//! Appends the lines of standard input to a file: @NAME@.
//!
//! Build: rustc -O log.rs      Use: ./log FILE < records
%if mmap
//! In a program of your own, use MappedLog with each record and its newline. Only one thread of one process may write the
//! file.
%else
//! In a program of your own, use BlockLog with each record and its newline. Only one thread of one process may write the
//! file.
%end
%if mmap
//! A kill leaves NULs at the end of the file: cut them off before the next use.
%else
//! A write has whole blocks, which divide records: a kill can leave a part of one at the end of the file.
%end

%if mmap
use std::ffi::{c_int, c_void};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead};
use std::os::fd::AsRawFd;

// Declared for 64-bit Linux, because the standard library has no mmap(2); the crates libc and memmap2 have it for all.
extern "C" {
    fn mmap(addr: *mut c_void, len: usize, prot: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
    fn munmap(addr: *mut c_void, len: usize) -> c_int;
    fn posix_fallocate(fd: c_int, offset: i64, len: i64) -> c_int;
}
const PROT_READ_WRITE: c_int = 3;
const MAP_SHARED: c_int = 1;
/// The file grows by so many bytes; a multiple of all page sizes.
const WINDOW_BYTES: usize = 4 << 20;
/// A multiple of all page sizes, for the offset of the window.
const ALIGN: u64 = 65_536;

/// A shared mapping of a part of a file, whose blocks are reserved.
struct Window(*mut u8);

impl Window {
    fn new(file: &File, start: u64) -> io::Result<Window> {
        let fd = file.as_raw_fd();
        // With reserved blocks a full disk is an error here. Otherwise it is SIGBUS at a later store.
        // SAFETY: a plain system call on an open descriptor.
        let error = unsafe { posix_fallocate(fd, start as i64, WINDOW_BYTES as i64) };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        // SAFETY: the kernel chooses an address that nothing uses.
        let at = unsafe {
            mmap(std::ptr::null_mut(), WINDOW_BYTES, PROT_READ_WRITE, MAP_SHARED, fd, start as i64)
        };
        if at as isize == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(Window(at.cast()))
    }

    fn store(&mut self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= WINDOW_BYTES);
        // SAFETY: the range is inside the mapping, and `bytes` is other memory.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.add(at), bytes.len()) };
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the mapping is this window's own. It fails only for a range that is no mapping.
        unsafe { munmap(self.0.cast(), WINDOW_BYTES) };
    }
}

pub struct MappedLog {
    file: File,
    window: Window,
    /// Offset of the window.
    start: u64,
    /// Offset of the end of the records.
    end: u64,
}

impl MappedLog {
    pub fn open(path: &str) -> io::Result<MappedLog> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let end = file.metadata()?.len();
        let start = end - end % ALIGN;
        let window = Window::new(&file, start)?;
        Ok(MappedLog { file, window, start, end })
    }

    /// Other processes see the record at once; the kernel writes it back like a write(2).
    pub fn record(&mut self, record: &[u8]) -> io::Result<()> {
        let mut rest = record;
        while !rest.is_empty() {
            let at = (self.end - self.start) as usize;
            if at == WINDOW_BYTES {
                let start = self.end - self.end % ALIGN;
                self.window = Window::new(&self.file, start)?; // after an error, the next call tries again
                self.start = start;
                continue;
            }
            let (part, after) = rest.split_at(rest.len().min(WINDOW_BYTES - at));
            self.window.store(at, part);
            self.end += part.len() as u64;
            rest = after;
        }
        Ok(())
    }

    /// Cuts off what was reserved. Call it also after an error.
    pub fn close(self) -> io::Result<()> {
        drop(self.window);
        self.file.set_len(self.end)
    }
}
%end
%if direct
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

/// O_DIRECT of Linux on x86-64, arm and riscv; the crate libc has it for all.
const O_DIRECT: i32 = if cfg!(any(target_arch = "aarch64", target_arch = "arm")) { 0o200000 } else { 0o40000 };
/// No device has larger sectors.
const ALIGN: usize = 4096;
const BLOCK_BYTES: usize = @BUFFER@;

#[repr(align(4096))]
struct Block([u8; BLOCK_BYTES]);

pub struct BlockLog {
    file: File,
    block: Box<Block>,
    used: usize,
    /// Offset of the block; a multiple of ALIGN.
    start: u64,
}

impl BlockLog {
    pub fn open(path: &str) -> io::Result<BlockLog> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let cached = options.open(path)?;
        // The first block begins with the bytes after the last aligned offset.
        let end = cached.metadata()?.len();
        let used = (end % ALIGN as u64) as usize;
        let start = end - used as u64;
        let mut block = Box::new(Block([0; BLOCK_BYTES]));
        cached.read_exact_at(&mut block.0[..used], start)?;
        // EINVAL: this file system has no O_DIRECT.
        let file = options.custom_flags(O_DIRECT).open(path)?;
        Ok(BlockLog { file, block, used, start })
    }

    /// The record is in the file when its block is full.
    pub fn record(&mut self, record: &[u8]) -> io::Result<()> {
        let mut rest = record;
        while !rest.is_empty() {
            let (part, after) = rest.split_at(rest.len().min(BLOCK_BYTES - self.used));
            self.block.0[self.used..self.used + part.len()].copy_from_slice(part);
            self.used += part.len();
            rest = after;
            if self.used == BLOCK_BYTES {
                self.file.write_all_at(&self.block.0, self.start)?;
                self.start += BLOCK_BYTES as u64;
                self.used = 0;
            }
        }
        Ok(())
    }

    /// Call it: drop could not report an error.
    pub fn close(mut self) -> io::Result<()> {
        if self.used > 0 {
            // The last block is padded, and the padding cut off.
            let padded = self.used.next_multiple_of(ALIGN);
            self.block.0[self.used..padded].fill(0);
            self.file.write_all_at(&self.block.0[..padded], self.start)?;
            self.file.set_len(self.start + self.used as u64)?;
        }
        Ok(())
    }
}
%end

%if mmap
fn copy_lines(log: &mut MappedLog) -> io::Result<()> {
%else
fn copy_lines(log: &mut BlockLog) -> io::Result<()> {
%end
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        log.record(&line)?;
        line.clear();
    }
    Ok(())
}

fn main() {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: log FILE");
        std::process::exit(2);
    };
%if mmap
    let opened = MappedLog::open(&path);
%else
    let opened = BlockLog::open(&path);
%end
    let copied = opened.and_then(|mut log| {
        let copied = copy_lines(&mut log);
        log.close().and(copied)
    });
    if let Err(error) = copied {
        eprintln!("{path}: {error}");
        std::process::exit(1);
    }
}
