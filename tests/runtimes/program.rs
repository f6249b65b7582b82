// As program.py, through BufWriters.
use std::fs::File;
use std::io::{BufWriter, Write, stdout};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

fn main() {
    let mut log = BufWriter::new(File::create("log").unwrap());
    let mut out = BufWriter::new(stdout());
    for i in 0..2 {
        writeln!(out, "out {}", i).unwrap();
        writeln!(log, "log {}", i).unwrap();
    }
    File::create("ready").unwrap();
    if std::env::args().len() > 1 {
        Command::new("kill").args(&["-9", &std::process::id().to_string()]).status().unwrap();
    }
    sleep(Duration::from_secs(60));
    out.flush().unwrap();
    log.flush().unwrap();
}
