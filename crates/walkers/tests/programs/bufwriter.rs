//! Leaves known bytes in buffers of Rust's library, writes a byte to stderr, waits until a file "go"
//! exists, and then waits forever.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, LineWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Barrier, LazyLock};
use std::time::Duration;

static STARTED: LazyLock<Barrier> = LazyLock::new(|| Barrier::new(2));

struct Log {
    name: String,
    out: BufWriter<File>,
}

/// A structure that looks like a stream.
#[repr(C)]
struct Decoy {
    text: String,
    zero: u32,
    number: i32,
}

fn create(name: &str) -> File {
    File::create(folder().join(name)).unwrap()
}

fn folder() -> PathBuf {
    PathBuf::from(std::env::args().nth(1).unwrap())
}

fn say() {
    std::io::stderr().write_all(b".").unwrap();
}

fn passed_on(out: BufWriter<File>) -> Box<Log> {
    Box::new(Log { name: "boxed".into(), out })
}

fn in_a_thread() {
    let mut out = BufWriter::new(create("thread"));
    out.write_all(b"in a thread").unwrap();
    STARTED.wait();
    std::thread::sleep(Duration::from_secs(1000));
    out.flush().unwrap();
}

fn main() {
    let mut stack = BufWriter::with_capacity(256, create("stack"));
    for _ in 0..40 {
        stack.write_all(b"flushed ").unwrap();
    }
    stack.write_all(b"on the stack").unwrap();
    let mut boxed = passed_on(BufWriter::with_capacity(4096, create("boxed")));
    boxed.out.write_all(b"in a box").unwrap();
    let mut lines = LineWriter::new(create("lines"));
    lines.write_all(b"a whole line\nand a part").unwrap();
    let mut empty = BufWriter::new(create("empty"));
    empty.write_all(b"all of it").unwrap();
    empty.flush().unwrap();
    let mut out = BufWriter::new(std::io::stdout());
    out.write_all(b"for stdout").unwrap();
    let mut input = BufReader::new(File::open(folder().join("input")).unwrap());
    input.read_line(&mut String::new()).unwrap();
    let closed = BufWriter::new(create("closed"));
    let (file, rest) = closed.into_parts();
    drop((file, rest));
    let _thread = std::thread::spawn(in_a_thread);
    STARTED.wait();
    let decoy = |number| Decoy { text: "not a stream at all".repeat(number as usize), zero: 0, number };
    let decoys: Vec<Decoy> = (1..30).map(decoy).collect();
    say();
    while !Path::new(&folder().join("go")).exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    boxed.out.write_all(b", more").unwrap();
    let mut late = BufWriter::new(create("late"));
    late.write_all(b"later").unwrap();
    say();
    std::thread::sleep(Duration::from_secs(1000));
    println!("{:?}", decoys.iter().map(|one| (&one.text, one.zero, one.number)).collect::<Vec<_>>());
    println!("{} {:?}", boxed.name, input.read_line(&mut String::new()));
}
