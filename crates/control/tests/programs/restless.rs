//! As restless.c, through buffers of Rust's library: writes output that only the seed determines, at a changing speed.
//! The first argument is the mode: p plain, l a LineWriter, o over standard output, w with write(2), f and u with forks,
//! s seeks, 2 two streams, t threads, m moves the stream, d drops many streams, e executes itself; the second the seed,
//! the third the number of lines, the fourth a file for mode s.

use std::fs::File;
use std::io::{self, BufWriter, LineWriter, Read, Seek, SeekFrom, Write};
use std::os::fd::FromRawFd;
use std::os::unix::process::CommandExt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

unsafe extern "C" {
    fn dup(fd: i32) -> i32;
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
    fn write(fd: i32, bytes: *const u8, count: usize) -> isize;
}

struct Random(u64);

impl Random {
    fn draw(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % below
    }

    /// The kind of pause does not affect the output.
    fn idle(&mut self, below: u64) {
        let pause = Duration::from_micros(self.draw(below));
        let compute = |time: Duration| {
            let end = Instant::now() + time;
            while Instant::now() < end {}
        };
        match pause.as_micros() % 4 {
            0 => std::thread::sleep(pause),
            1 => compute(pause),
            2 => {
                compute(pause / 2);
                std::thread::sleep(pause / 2);
            }
            _ => {}
        }
    }
}

fn line<W: Write>(random: &mut Random, to: &mut W, number: u64) {
    let length = random.draw(60) as usize;
    match random.draw(5) {
        0 => writeln!(to, "{number} {}", "7".repeat(length)).unwrap(),
        1 => {
            for _ in 0..length {
                to.write_all(&[b'a' + random.draw(26) as u8]).unwrap();
            }
            to.write_all(b"\n").unwrap();
        }
        2 => {
            to.write_all(&[b'z'; 60][..length]).unwrap();
            to.write_all(b"\n").unwrap();
        }
        3 => {
            let length = if random.draw(8) > 0 { length } else { 1000 + 140 * length };
            to.write_all(&vec![b'w'; length]).unwrap();
            to.write_all(b"\n").unwrap();
        }
        _ => to.write_all(b"the quick brown fox\n").unwrap(),
    }
}

/// Returns a file of its own over standard output's description.
fn out() -> File {
    // SAFETY: the descriptor is a new one.
    unsafe { File::from_raw_fd(dup(1)) }
}

fn capacity(random: &mut Random) -> usize {
    [8192, 1024, 256, 4096, 65536][random.draw(5) as usize]
}

/// Forks a child that writes the bytes pending at the fork too, unless `clean` flushes them before.
fn fork_child<W: Write>(random: &mut Random, out: &mut W, clean: bool) {
    let flush = random.draw(2) > 0;
    if flush || clean {
        out.flush().unwrap();
    }
    // SAFETY: the program has one thread.
    unsafe {
        let child = fork();
        if child == 0 {
            if flush {
                out.write_all(b"child\n").unwrap();
            }
            out.flush().unwrap();
            _exit(0);
        }
        waitpid(child, std::ptr::null_mut(), 0);
    }
}

fn plain<W: Write>(random: &mut Random, out: &mut W, lines: u64, mode: u8) {
    for number in 0..lines {
        line(random, out, number);
        if random.draw(12) == 0 {
            random.idle(6000);
        }
        if random.draw(40) == 0 {
            out.flush().unwrap();
        }
        if mode == b'w' && random.draw(30) == 0 {
            out.flush().unwrap();
            let text = b"by write(2)\n";
            // SAFETY: the bytes are a constant.
            assert_eq!(unsafe { write(1, text.as_ptr(), text.len()) }, 12);
        }
        if (mode == b'f' || mode == b'u') && random.draw(60) == 0 {
            fork_child(random, out, mode == b'f');
        }
    }
}

fn seek(random: &mut Random, out: &mut impl Write, path: &str, lines: u64) {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap();
    let mut only = BufWriter::new(File::create(format!("{path}2")).unwrap());
    let mut file = BufWriter::with_capacity(capacity(random), file);
    for number in 0..lines {
        line(random, &mut file, number);
        line(random, &mut only, number);
        if random.draw(8) == 0 {
            let back = random.draw(5);
            let at = file.stream_position().unwrap();
            file.seek(SeekFrom::Start(at.saturating_sub(back))).unwrap();
            only.seek(SeekFrom::End(-(back as i64))).unwrap();
            writeln!(out, "at {at} {}", only.stream_position().unwrap()).unwrap();
        }
        if random.draw(4) == 0 {
            random.idle(3000);
        }
    }
    file.flush().unwrap();
    only.flush().unwrap();
    for path in [path.to_string(), format!("{path}2")] {
        let mut text = Vec::new();
        File::open(path).unwrap().read_to_end(&mut text).unwrap();
        out.write_all(&text).unwrap();
    }
}

fn two_streams(random: &mut Random, first: &mut impl Write, lines: u64) {
    let mut second = BufWriter::with_capacity(512, out());
    for number in 0..lines {
        line(random, first, number);
        if random.draw(5) == 0 {
            random.idle(4000);
            first.flush().unwrap();
            line(random, &mut second, number);
            random.idle(4000);
            second.flush().unwrap();
        }
    }
}

fn threads(lines: u64) {
    let out = Arc::new(Mutex::new(BufWriter::new(out())));
    let print = |out: Arc<Mutex<BufWriter<File>>>| {
        for number in 0..lines {
            out.lock().unwrap().write_all(b"thread\n").unwrap();
            if number % 16 == 0 {
                std::thread::sleep(Duration::from_micros(500));
            }
        }
    };
    let others: Vec<_> = (0..3).map(|_| (Arc::clone(&out), ())).collect();
    std::thread::scope(|scope| {
        for (out, ()) in others {
            scope.spawn(move || print(out));
        }
        print(Arc::clone(&out));
    });
}

struct Owner {
    name: String,
    out: BufWriter<File>,
}

fn moved(random: &mut Random, mut out: BufWriter<File>, lines: u64) {
    for number in 0..lines {
        line(random, &mut out, number);
        if random.draw(3) == 0 {
            random.idle(3000);
        }
        if random.draw(5) == 0 {
            let mut owners: Vec<Option<Box<Owner>>> = (0..random.draw(4)).map(|_| None).collect();
            let name = "x".repeat(random.draw(3000) as usize);
            owners.push(Some(Box::new(Owner { name, out })));
            random.idle(9000);
            owners.push(None);
            let owner = owners.into_iter().flatten().next().unwrap();
            assert!(owner.name.len() < 3000);
            out = owner.out;
        }
    }
}

/// Each file is closed before the next one, so all get the same descriptor, and their buffers the same memory.
fn dropped(random: &mut Random, lines: u64) {
    for number in 0..lines {
        let mut one = BufWriter::with_capacity(capacity(random), out());
        for _ in 0..random.draw(4) {
            line(random, &mut one, number);
            random.idle(4000);
        }
        let kept = if random.draw(2) == 0 { Some(one.into_inner().unwrap()) } else { None };
        random.idle(2000);
        if let Some(mut file) = kept {
            file.write_all(b"without a buffer\n").unwrap();
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let (mode, lines) = (words[1].as_bytes()[0], words[3].parse().unwrap());
    let mut random = Random(words[2].parse().unwrap());
    let mut own = BufWriter::with_capacity(capacity(&mut random), out());
    match mode {
        b'l' => plain(&mut random, &mut LineWriter::new(out()), lines, mode),
        b'o' => plain(&mut random, &mut BufWriter::new(io::stdout()), lines, mode),
        b's' => seek(&mut random, &mut own, &words[4], lines),
        b'2' => two_streams(&mut random, &mut own, lines),
        b't' => threads(lines),
        b'm' => moved(&mut random, own, lines),
        b'd' => dropped(&mut random, lines),
        b'e' => {
            plain(&mut random, &mut own, lines, b'p');
            own.flush().unwrap();
            panic!("{}", std::process::Command::new("/proc/self/exe").arg("p").args(&words[2..]).exec());
        }
        _ => plain(&mut random, &mut own, lines, mode),
    }
}
