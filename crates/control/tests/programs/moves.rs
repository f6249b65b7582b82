//! Writes lines to files by writers that were moved, and ends without a flush, or waits for a file and flushes. Arguments: the
//! folder, and how it moves the writers.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, mpsc};

const LINES: u64 = 500;

fn line(number: u64) -> String {
    format!("{number} hello world, this is a line of a log\n")
}

struct Logger<W: Write> {
    writer: W,
    count: u64,
}

impl<W: Write> Logger<W> {
    fn log(&mut self, lines: u64) {
        for _ in 0..lines {
            self.writer.write_all(line(self.count).as_bytes()).unwrap();
            self.count += 1;
        }
    }
}

fn open(folder: &str, name: &str) -> io::Result<Logger<BufWriter<File>>> {
    let file = File::create(format!("{folder}/{name}"))?;
    Ok(Logger { writer: BufWriter::new(file), count: 0 })
}

/// A map moves its values when it grows.
fn in_a_map(folder: &str) {
    let mut map = HashMap::new();
    for number in 0..LINES {
        for index in 0..=(number / 25) {
            let logger = map.entry(index).or_insert_with(|| open(folder, &index.to_string()).unwrap());
            if index == 0 {
                logger.log(1);
            }
        }
    }
    std::process::exit(0);
}

fn in_a_channel(folder: &str) {
    let (sender, receiver) = mpsc::channel();
    let mut first = open(folder, "0").unwrap();
    first.log(LINES / 2);
    sender.send(first).unwrap();
    let worker = std::thread::spawn(move || {
        receiver.recv().unwrap().log(LINES - LINES / 2);
        std::process::abort();
    });
    worker.join().unwrap();
}

/// All lines are equal, so that no file shows which of them are written.
fn equal_lines(folder: &str) {
    let mut logger = Box::new(BufWriter::new(File::create(format!("{folder}/0")).unwrap()));
    for _ in 0..LINES {
        logger.write_all(b"hello world, this is a line of a log\n").unwrap();
    }
    std::process::exit(0);
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let (folder, how) = (&words[1], words[2].as_str());
    match how {
        "field" => {
            let writer = BufWriter::new(File::create(format!("{folder}/0")).unwrap());
            let mut logger = Logger { writer, count: 0 };
            logger.log(LINES);
            std::process::exit(0);
        }
        "box" => {
            let mut logger = Box::new(open(folder, "0").unwrap());
            logger.log(LINES);
            std::process::exit(0);
        }
        "shared" => {
            let logger = Arc::new(Mutex::new(open(folder, "0").unwrap()));
            logger.lock().unwrap().log(LINES);
            std::process::exit(0);
        }
        "flushed" => {
            let mut logger = open(folder, "0").unwrap();
            logger.log(LINES - 10);
            let mut boxed = Box::new(logger);
            boxed.log(10);
            boxed.writer.flush().unwrap();
            std::process::exit(0);
        }
        "idle" => {
            let mut logger = Box::new(open(folder, "0").unwrap());
            logger.log(LINES);
            while !std::fs::exists(format!("{folder}/stop")).unwrap() {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            logger.log(1);
        }
        "map" => in_a_map(folder),
        "channel" => in_a_channel(folder),
        _ => equal_lines(folder),
    }
}
