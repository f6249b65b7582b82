//! Leaves bytes in standard output and holds its lock, writes a byte to stderr, waits for the end of stdin, and prints the
//! rest. With the argument `free` it is a prompt, and the lock is free; with `writer` the bytes are in a BufWriter.

use std::io::{Read, Write};

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("free") => return prompt(),
        Some(_) => return writer(),
        None => {}
    }
    let mut out = std::io::stdout().lock();
    write!(out, "one\ntwo").unwrap();
    std::io::stderr().write_all(b".").unwrap();
    assert_eq!(std::io::stdin().read(&mut [0]).unwrap(), 0);
    writeln!(out, " end").unwrap();
}

/// Prints the bytes one by one, so that optimized code would keep their number in a register if it might.
fn prompt() {
    print!("one\n");
    "two".chars().for_each(|letter| print!("{letter}"));
    std::io::stderr().write_all(b".").unwrap();
    while std::io::stdin().read(&mut [0]).unwrap() > 0 {
        print!("never");
    }
    print!(" end");
    println!();
}

fn writer() {
    let file = std::fs::File::options().append(true).open("/dev/stdout").unwrap();
    let mut out = std::io::BufWriter::new(file);
    write!(out, "one\ntwo").unwrap();
    std::io::stderr().write_all(b".").unwrap();
    assert_eq!(std::io::stdin().read(&mut [0]).unwrap(), 0);
    writeln!(out, " end").unwrap();
}
