use std::io::{BufWriter, Result, Write, stdout};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{sleep, spawn};
use std::time::Duration;

fn report(results: Receiver<u32>) -> Result<()> {
    let mut out = BufWriter::new(stdout());
    for result in results {
        writeln!(out, "result {result}")?;
    }
    out.flush()
}

fn main() {
    let (sender, results) = channel();
    let reporter = spawn(move || report(results));
    for job in 0..5 {
        sender.send(job * job).unwrap();
    }
    sleep(Duration::from_millis(1600));
    drop(sender);
    reporter.join().unwrap().unwrap();
}
