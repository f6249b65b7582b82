use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::thread::sleep;
use std::time::Duration;

fn main() -> Result<()> {
    let mut log = BufWriter::new(File::create("poller.log")?);
    for round in 0..8 {
        writeln!(log, "round {round}: queue has {} jobs", round * 7 % 5)?;
        log.flush()?;
        sleep(Duration::from_millis(200));
    }
    log.flush()
}
