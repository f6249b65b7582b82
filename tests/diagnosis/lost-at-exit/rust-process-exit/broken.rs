use std::fs::File;
use std::io::{BufWriter, Result, Write};

fn main() -> Result<()> {
    let mut report = BufWriter::new(File::create("report.txt")?);
    let mut bad = 0;
    for i in 1..=200 {
        if i * i % 61 == 5 {
            writeln!(report, "record {i} is bad")?;
            bad += 1;
        }
    }
    writeln!(report, "{bad} of 200 records are bad")?;
    if bad > 0 {
        std::process::exit(1);
    }
    Ok(())
}
