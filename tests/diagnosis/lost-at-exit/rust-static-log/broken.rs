use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Mutex;

static LOG: Mutex<Option<BufWriter<File>>> = Mutex::new(None);

fn log(text: &str) {
    if let Some(log) = LOG.lock().unwrap().as_mut() {
        writeln!(log, "{text}").unwrap();
    }
}

fn main() {
    *LOG.lock().unwrap() = Some(BufWriter::new(File::create("app.log").unwrap()));
    log("started");
    let sum: u64 = (1..=1000u64).map(|i| i * i).sum();
    log(&format!("the sum is {sum}"));
    log("ended");
}
