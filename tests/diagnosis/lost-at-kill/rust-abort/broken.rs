use std::fs::File;
use std::io::{BufWriter, Result, Write};

fn main() -> Result<()> {
    let mut journal = BufWriter::new(File::create("journal.txt")?);
    let mut balance: i64 = 100;
    for step in 1..30 {
        balance -= step;
        writeln!(journal, "step {step}: balance {balance}")?;
        if balance < 0 {
            std::process::abort();
        }
    }
    journal.flush()
}
