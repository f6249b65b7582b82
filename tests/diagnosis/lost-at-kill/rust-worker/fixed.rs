use std::fs::OpenOptions;
use std::io::{BufWriter, Result, Write};
use std::thread::sleep;
use std::time::Duration;

fn main() -> Result<()> {
    let file = OpenOptions::new().create(true).append(true).open("worker.log")?;
    let mut log = BufWriter::new(file);
    for job in 1..1000 {
        writeln!(log, "job {job} finished")?;
        log.flush()?;
        sleep(Duration::from_millis(20));
    }
    log.flush()
}
