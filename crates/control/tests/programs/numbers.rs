//! As numbers.c, through a BufWriter: prints numbered lines, with pauses if the second argument is not 0, until it is
//! killed. The shared file that the first argument names holds the number of complete lines.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering::Release};
use std::time::Duration;

unsafe extern "C" {
    fn mmap(at: *mut u8, bytes: usize, protection: i32, flags: i32, fd: i32, offset: i64) -> *mut u8;
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let file = File::options().read(true).write(true).open(&words[1]).unwrap();
    // SAFETY: the mapping is 8 bytes of the file, shared and writable.
    let complete = unsafe { &*mmap(std::ptr::null_mut(), 8, 3, 1, file.as_raw_fd(), 0).cast::<AtomicU64>() };
    let every: u64 = words[2].parse().unwrap();
    let mut out = BufWriter::new(File::options().append(true).open("/dev/stdout").unwrap());
    for number in 0.. {
        if number % 97 == 0 {
            writeln!(out, "{number} {}", "x".repeat(1500)).unwrap();
        } else if number % 3 > 0 {
            writeln!(out, "{number} a line that ends here").unwrap();
        } else {
            for byte in format!("{number} by its characters\n").bytes() {
                out.write_all(&[byte]).unwrap();
            }
        }
        complete.store(number + 1, Release);
        if every > 0 && number % every == 0 {
            std::thread::sleep(Duration::from_micros(200));
        }
        if every > 0 && number % (37 * every) == 0 {
            out.flush().unwrap();
        }
    }
}
