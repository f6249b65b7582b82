//! Reads of files and memory that a server must answer, made by a child that weir can abandon.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::time::ClockId;

use crate::clock::clock_ns;
use crate::expendable::{self, ExpendableChild, Limits, Rights, answer_of};
use crate::served_mounts::ServedMounts;
use crate::{maps, memory, proc};

/// The limits of a read. A server that is busy for longer counts as one that does not answer: meanwhile a process that is
/// traced stays stopped.
const LIMITS: Limits = Limits { blocked: Duration::from_secs(2), total: None };
/// The bytes of a file that the server must deliver before weir reads the file itself.
const PROBED_BYTES: u64 = 1 << 20;

/// The interval between two looks at the mappings of a process: a program needs longer to map a file and to use it for a
/// stream. A look takes 2 µs, and 50 µs if there are served mounts.
const LOOK_AGAIN_NS: u64 = 20_000_000;
/// The most processes whose last look is remembered.
const PROCESSES_MOST: usize = 4096;

/// Served memory, and servers that did not answer.
#[derive(Default)]
struct Served {
    /// Mapped ranges by process.
    ranges: HashMap<u32, Vec<Range<u64>>>,
    /// Processes whose memory did not answer.
    silent: HashSet<u32>,
    /// Mount points whose files did not answer.
    silent_mounts: HashSet<PathBuf>,
}

static SERVED: Mutex<Option<Served>> = Mutex::new(None);
/// Whether a process has served memory: otherwise reads need no look at [`SERVED`].
static HAS_RANGES: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The times at which this thread last looked at the mappings of processes, by CLOCK_MONOTONIC_COARSE.
    static LOOKED: RefCell<HashMap<u32, u64>> = RefCell::default();
    static READER: RefCell<Option<ExpendableChild>> = const { RefCell::new(None) };
}

fn with_served<T>(change: impl FnOnce(&mut Served) -> T) -> T {
    change(SERVED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// Returns an error if the file is served and its server does not answer. A child that can be abandoned asks nobody.
pub(crate) fn check_file(path: &Path) -> io::Result<()> {
    if expendable::is_child() {
        return Ok(());
    }
    let (pid, inside) = process_and_path(path);
    let mounts = ServedMounts::of(pid);
    let Some(point) = mounts.point_of(&inside) else { return Ok(()) };
    let is_silent = with_served(|served| served.silent_mounts.contains(point));
    if !is_silent && answer_of(Rights::ReadingOnly, |_| probe(path), LIMITS, None).is_ok() {
        return Ok(());
    }
    with_served(|served| {
        served.silent_mounts.insert(point.to_path_buf());
        // A file of weir's own namespace may belong to no process: the caller names it.
        if pid != std::process::id() {
            served.silent.insert(pid);
        }
    });
    Err(io::Error::new(io::ErrorKind::TimedOut, "its file system does not answer"))
}

/// Returns the process in whose mount namespace a path is, and the path there: for /proc/PID/root/…, and for the links
/// /proc/PID/exe, /proc/PID/map_files/… and /proc/PID/fd/…. Another path is one of this process.
fn process_and_path(path: &Path) -> (u32, PathBuf) {
    let of_process = || {
        let mut parts = path.strip_prefix("/proc").ok()?.components();
        let pid = parts.next()?.as_os_str().to_str()?.parse().ok()?;
        if parts.next()?.as_os_str() == "root" {
            return Some((pid, Path::new("/").join(parts.as_path())));
        }
        Some((pid, std::fs::read_link(path).ok()?))
    };
    of_process().unwrap_or_else(|| (std::process::id(), path.to_path_buf()))
}

/// Opens a file and reads its first bytes. The answer does not matter: it only has to come.
fn probe(path: &Path) -> Vec<u8> {
    let is_file = std::fs::metadata(path).is_ok_and(|about| about.is_file());
    if let Some(file) = std::fs::File::open(path).ok().filter(|_| is_file) {
        let _answered = io::copy(&mut file.take(PROBED_BYTES), &mut io::sink());
    }
    Vec::new()
}

/// Notes which memory of a process is served, by the text of /proc/PID/maps.
pub(crate) fn note_mappings(pid: u32, maps: &[u8]) {
    let mounts = ServedMounts::of(pid);
    if mounts.devices().is_empty() && !HAS_RANGES.load(Relaxed) {
        return;
    }
    let text = String::from_utf8_lossy(maps);
    let range = |line: &str| {
        let mut fields = line.split(' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let device = fields.nth(2)?;
        mounts.devices().iter().any(|served| served == device).then_some(())?;
        Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
    };
    let ranges: Vec<Range<u64>> = text.lines().filter_map(range).collect();
    HAS_RANGES.fetch_or(!ranges.is_empty(), Relaxed);
    with_served(|served| match ranges.is_empty() {
        true => drop(served.ranges.remove(&pid)),
        false => drop(served.ranges.insert(pid, ranges)),
    });
}

/// Returns whether reads of a process may need a child. Looks at its mappings every [`LOOK_AGAIN_NS`] if its mounts have a
/// server. A child that can be abandoned reads itself.
pub(crate) fn is_needed(tid: u32) -> bool {
    if expendable::is_child() {
        return false;
    }
    let now = clock_ns(ClockId::MonotonicCoarse);
    let is_due = LOOKED.with_borrow_mut(|looked| {
        if looked.len() >= PROCESSES_MOST {
            looked.clear();
        }
        let due = looked.get(&tid).is_none_or(|at| now.saturating_sub(*at) >= LOOK_AGAIN_NS);
        if due {
            looked.insert(tid, now);
        }
        due
    });
    if is_due && !ServedMounts::of(tid).devices().is_empty() {
        let pid = proc::process_of(tid).unwrap_or(tid);
        note_mappings(pid, &maps::text(pid));
    }
    HAS_RANGES.load(Relaxed)
}

/// Returns the processes of which a served file or served memory did not answer, in order.
pub(crate) fn silent_processes() -> Vec<u32> {
    with_served(|served| served.silent.iter().copied().collect::<std::collections::BTreeSet<_>>())
        .into_iter()
        .collect()
}

/// Reads memory by a child if it is served; None if the caller can read it itself. A process that did not answer is not
/// asked again.
pub(crate) fn read_memory(tid: u32, address: u64, buffer: &mut [u8]) -> Option<usize> {
    if !is_needed(tid) {
        return None;
    }
    let pid = proc::process_of(tid).unwrap_or(tid);
    let end = address.saturating_add(buffer.len() as u64);
    let touches = |range: &Range<u64>| range.start < end && address < range.end;
    let (is_served, is_silent) = with_served(|served| {
        let ranges = served.ranges.get(&pid);
        (ranges.is_some_and(|all| all.iter().any(touches)), served.silent.contains(&pid))
    });
    if !is_served {
        return None;
    }
    let answer = if is_silent { None } else { ask(tid, address, buffer.len()) };
    let Some(bytes) = answer else {
        with_served(|served| served.silent.insert(pid));
        return Some(0);
    };
    buffer[..bytes.len()].copy_from_slice(&bytes);
    Some(bytes.len())
}

/// Lets the child of this thread read. Returns None if it gives no answer.
fn ask(tid: u32, address: u64, bytes: usize) -> Option<Vec<u8>> {
    let request = [u64::from(tid), address, bytes as u64].map(u64::to_le_bytes).concat();
    READER.with_borrow_mut(|reader| {
        if reader.is_none() {
            *reader = ExpendableChild::start(Rights::ReadingOnly, |request, _| answer(request)).ok();
        }
        let answer = reader.as_mut()?.ask(&request, LIMITS, None).ok().filter(|answer| answer.len() <= bytes);
        if answer.is_none() {
            *reader = None;
        }
        answer
    })
}

fn answer(request: &[u8]) -> Vec<u8> {
    let words: Vec<u64> = request.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let [tid, address, bytes] = words[..] else { return Vec::new() };
    let mut data = vec![0; bytes as usize];
    let got = memory::read_process(tid as u32, address, &mut data);
    data.truncate(got);
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_below_a_root_is_one_of_that_process() {
        assert_eq!(process_and_path(Path::new("/proc/7/root/usr/lib/a.so")), (7, "/usr/lib/a.so".into()));
        let own = std::process::id();
        assert_eq!(process_and_path(Path::new("/usr/a.so")), (own, "/usr/a.so".into()));
        let exe = PathBuf::from(format!("/proc/{own}/exe"));
        assert_eq!(process_and_path(&exe), (own, std::env::current_exe().expect("its path")));
    }

    #[test]
    fn a_child_reads_memory() {
        let text = *b"some text in memory";
        let answer = ask(std::process::id(), text.as_ptr() as u64, text.len());
        assert_eq!(answer.as_deref(), Some(&text[..]));
        assert_eq!(ask(std::process::id(), 8, 4), Some(Vec::new()), "an address without memory");
    }
}
