//! Appends standard input to a file: @NAME@.
//!
//! Build: rustc -O log.rs      Use: ./log FILE < SOURCE
//! The target must not be open for appending, and only one process may write it: copy_file_range(2) refuses O_APPEND.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsFd;

fn append_stdin(path: &str) -> io::Result<u64> {
    let mut target = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    target.seek(SeekFrom::End(0))?;
    // A File, because the Stdin of the library reads ahead into its buffer.
    let mut source = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    // On Linux it calls copy_file_range(2), sendfile(2) or splice(2), and read(2) and write(2) where these do not work.
    io::copy(&mut source, &mut target)
}

fn main() {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: log FILE");
        std::process::exit(2);
    };
    if let Err(error) = append_stdin(&path) {
        eprintln!("{path}: {error}");
        std::process::exit(1);
    }
}
