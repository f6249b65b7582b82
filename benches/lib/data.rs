//! Input and output files, and the check of an output.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use weir_bench::directory::{BenchDirectory, DirectoryRequest};

use crate::contender::{self, Entry, Program};
use crate::{BoxError, rust_std, target_dir};

/// A line with its newline.
pub const LINE_BYTES: u64 = 81;
/// Lines of the input: 32 MiB.
const LINES: u64 = (32 << 20) / LINE_BYTES;
/// Lines of the short input: 8 MiB.
const SHORT_LINES: u64 = LINES / 4;
/// Size of the input of tail.
const BIG_BYTES: u64 = 1 << 30;
/// Size of the input of tr.
const TR_BYTES: u64 = 256 << 20;

/// The directory of the files, removed on drop.
pub struct Data {
    place: BenchDirectory,
}

impl Data {
    /// Makes the directory, on /dev/shm if it has enough memory, and writes the input that all jobs share.
    pub fn make() -> Result<Self, BoxError> {
        let need = BIG_BYTES + 3 * TR_BYTES;
        let shared_memory = Path::new("/dev/shm");
        let in_memory = weir_bench::machine::meminfo_bytes("MemAvailable").is_some_and(|b| b > 2 * need)
            && shared_memory.is_dir();
        let open = |dir: &Path| BenchDirectory::open(&DirectoryRequest::Dir(dir.into()), need);
        let place = match in_memory.then(|| open(shared_memory)) {
            Some(Ok(place)) => place,
            _ => open(&target_dir())?,
        };
        let data = Self { place };
        write_lines(&data.place.file("lines"), LINES)?;
        write_lines(&data.place.file("short"), SHORT_LINES)?;
        Ok(data)
    }

    /// Returns the input of an entry.
    pub fn input(&self, entry: &Entry) -> PathBuf {
        self.place.file(if entry.short { "short" } else { "lines" })
    }

    /// Returns st_blksize, the size of stdio's buffer for the files.
    pub fn block_bytes(&self) -> std::io::Result<u64> {
        Ok(fs::metadata(self.place.file("lines"))?.blksize())
    }

    /// Returns the file that contenders overwrite.
    pub fn output(&self) -> PathBuf {
        self.place.file("out")
    }

    /// Returns a file name that does not exist.
    pub fn new_output(&self) -> std::io::Result<PathBuf> {
        let path = self.place.file("new");
        if path.exists() {
            fs::remove_file(&path)?;
        }
        Ok(path)
    }

    /// Writes and returns a file with 1 GiB of lines.
    pub fn big(&self) -> Result<PathBuf, BoxError> {
        self.write_once("big", BIG_BYTES)
    }

    /// Writes and returns a file with 256 MiB of lines.
    pub fn for_tr(&self) -> Result<PathBuf, BoxError> {
        self.write_once("tr", TR_BYTES)
    }

    fn write_once(&self, name: &str, bytes: u64) -> Result<PathBuf, BoxError> {
        let path = self.place.file(name);
        write_lines(&path, bytes / LINE_BYTES)?;
        Ok(path)
    }

    /// Returns the directory and its file system, for the report.
    pub fn place_name(&self) -> String {
        format!("{} ({})", self.place.dir, self.place.fs)
    }

    /// Checks that `path` has the output that the entry must write.
    pub fn check(&self, entry: &Entry, path: &Path) -> Result<(), BoxError> {
        let is_right = match entry.job {
            "putc" => same(path, (0..entry.count).map(|i| (i & 0x7f) as u8))?,
            "formatted" => {
                let mut expected = Vec::new();
                rust_std::formatted(&mut expected, entry.count)?;
                fs::read(path)? == expected
            }
            "calls" => {
                let reference = Entry { program: Program::CallsGlibc, ..entry.clone() };
                let right = self.output().with_extension("right");
                contender::run_on(&reference, &self.input(entry), &right, 0)?;
                let same = same_files(path, &right)?;
                fs::remove_file(&right)?;
                same
            }
            _ => same_files(path, &self.input(entry))?,
        };
        if is_right { Ok(()) } else { Err(format!("{} wrote something wrong", entry.label).into()) }
    }
}

fn same(path: &Path, mut expected: impl Iterator<Item = u8>) -> std::io::Result<bool> {
    for byte in BufReader::new(File::open(path)?).bytes() {
        if Some(byte?) != expected.next() {
            return Ok(false);
        }
    }
    Ok(expected.next().is_none())
}

/// Returns true if two files have equal contents.
pub fn same_files(a: &Path, b: &Path) -> std::io::Result<bool> {
    let (mut a, mut b) = (File::open(a)?, File::open(b)?);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    loop {
        x.clear();
        y.clear();
        (&mut a).take(1 << 20).read_to_end(&mut x)?;
        (&mut b).take(1 << 20).read_to_end(&mut y)?;
        if x != y || x.is_empty() {
            return Ok(x == y);
        }
    }
}

/// Writes log lines of 80 characters and a newline.
fn write_lines(path: &Path, lines: u64) -> std::io::Result<()> {
    let mut to = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let levels = ["INFO ", "DEBUG", "WARN ", "ERROR"];
    for i in 0..lines {
        let (level, worker, millis) = (levels[(i * 7 % 4) as usize], i * 31 % 512, i * 7919 % 100_000);
        let (minute, second) = (i / 60 % 60, i % 60);
        writeln!(
            to,
            "2025-07-22T10:{minute:02}:{second:02} {level} worker {worker:03}: request {i:09} took {millis:05} ms, status ok"
        )?;
    }
    to.flush()
}
