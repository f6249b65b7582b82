//! Leaves known bytes in Rust's standard output, writes a byte to stderr, and waits.

use std::io::Write;

fn main() {
    println!("a whole line");
    print!("in stdout");
    std::io::stderr().write_all(b".").unwrap();
    loop {
        std::thread::park();
    }
}
