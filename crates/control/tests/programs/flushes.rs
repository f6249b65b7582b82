//! Prints lines by each operation of a BufWriter that can flush. The shared file that the first argument names holds the
//! number of complete lines. SIGWINCH, which is ignored, marks the beginning and end of the part that the test steps
//! through.

use std::fs::File;
use std::io::{BufWriter, IoSlice, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

unsafe extern "C" {
    fn dup(fd: i32) -> i32;
    fn close(fd: i32) -> i32;
    fn getpid() -> i32;
    fn kill(pid: i32, signal: i32) -> i32;
    fn mmap(at: *mut u8, bytes: usize, protection: i32, flags: i32, fd: i32, offset: i64) -> *mut u8;
}

fn lines<W: Write>(out: &mut W, complete: &AtomicU64, same: bool, count: usize, longer: usize) {
    for _ in 0..count {
        let number = complete.load(Relaxed);
        let line = if same { "a line\n".into() } else { format!("{number} {}\n", "x".repeat(longer)) };
        match number % 4 {
            0 => out.write_all(line.as_bytes()).unwrap(),
            1 => line.bytes().for_each(|byte| out.write_all(&[byte]).unwrap()),
            2 => {
                let (first, rest) = line.as_bytes().split_at(3);
                let mut parts = &mut [IoSlice::new(first), IoSlice::new(rest)][..];
                while !parts.is_empty() {
                    let written = out.write_vectored(parts).unwrap();
                    IoSlice::advance_slices(&mut parts, written);
                }
            }
            _ => write!(out, "{line}").unwrap(),
        }
        complete.store(number + 1, Relaxed);
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let file = File::options().read(true).write(true).open(&words[1]).unwrap();
    // SAFETY: the mapping is 8 bytes of the file, shared and writable.
    let complete = unsafe { &*mmap(std::ptr::null_mut(), 8, 3, 1, file.as_raw_fd(), 0).cast::<AtomicU64>() };
    let (same, buffered) = (words[2] == "same", words[3].parse().unwrap());
    // SAFETY: the descriptors are the program's own.
    let file = unsafe { File::from_raw_fd(dup(1)) };
    let mut out = BufWriter::with_capacity(buffered, file);
    let mark = || assert_eq!(unsafe { kill(getpid(), 28) }, 0);
    lines(&mut out, complete, same, 50, 0);
    // SAFETY: standard output is not used.
    unsafe { close(1) };
    mark();
    lines(&mut out, complete, same, 60, 0);
    out.flush().unwrap();
    lines(&mut out, complete, same, 4, 0);
    for each in 0..8 {
        lines(&mut out, complete, same, 1, 3 * buffered + each);
    }
    lines(&mut out, complete, same, 2, 0);
    out.flush().unwrap();
    out.flush().unwrap();
    mark();
}
