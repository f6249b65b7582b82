//! A logger that writes through a BufWriter and never flushes it. It has no debug information.
use std::fs::File;
use std::io::{self, BufRead, BufWriter, Write};

fn main() -> io::Result<()> {
    let mut out = BufWriter::new(File::create("log")?);
    for line in io::stdin().lock().lines() {
        writeln!(out, "seen {}", line?)?;
    }
    out.flush()
}
