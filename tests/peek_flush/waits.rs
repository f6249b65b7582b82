//! Leaves bytes in standard output and holds its lock, writes a byte to stderr, waits for the end of stdin, and prints the
//! rest.

use std::io::{Read, Write};

fn main() {
    let mut out = std::io::stdout().lock();
    write!(out, "one\ntwo").unwrap();
    std::io::stderr().write_all(b".").unwrap();
    assert_eq!(std::io::stdin().read(&mut [0]).unwrap(), 0);
    writeln!(out, " end").unwrap();
}
