//! The calls on files in which threads of the worker wait, seen from outside.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::file_calls::{CallTarget, FileCall};
use crate::memory::{Memory, ProcessMemory};
use crate::proc;

/// The duration of a call that is first reported. Each later report comes after twice the time.
pub(super) const REPORTED: Duration = Duration::from_secs(10);
/// A thread that has been in the same call for this long waits for its file.
const SILENT: Duration = Duration::from_secs(1);
/// A longer path is not read.
const PATH_BYTES: usize = 4096;

/// A call of one thread, since it was first seen.
struct FileWait {
    /// The line of /proc/TID/syscall, with arguments and stack pointer, and the CPU time of the thread.
    identity: String,
    since: Instant,
    /// The duration at the next report.
    report_at: Duration,
    /// The call and its file, for the reports.
    name: &'static str,
    path: String,
}

/// The calls on files of the worker and its descendants.
#[derive(Default)]
pub(super) struct FileWaits {
    waits: HashMap<u32, FileWait>,
    /// The description of the last call that was long. A thread that is killed in it shows no call while it closes its files.
    last: Option<String>,
}

impl FileWaits {
    /// Checks all threads again; calls `begins` with each process before its files are read. Returns a sentence for each call that
    /// has not returned for long, and for each reported call that has returned.
    pub fn look(&mut self, worker: u32, begins: &dyn Fn(u32)) -> Vec<String> {
        let mut sentences = Vec::new();
        let mut before = std::mem::take(&mut self.waits);
        for pid in proc::with_descendants(worker) {
            begins(pid);
            for tid in proc::threads(pid) {
                let Some((identity, call)) = current_call(tid) else { continue };
                // A wait that remains in `before` has returned, even if the thread is already in its next call.
                let is_same = before.get(&tid).is_some_and(|wait| wait.identity == identity);
                let same = is_same.then(|| before.remove(&tid)).flatten();
                let mut wait = same.unwrap_or_else(|| FileWait {
                    identity,
                    since: Instant::now(),
                    report_at: REPORTED,
                    name: call.name,
                    path: String::new(),
                });
                let seconds = wait.since.elapsed();
                if seconds >= REPORTED && wait.report_at == REPORTED {
                    wait.path = path_of(tid, &call);
                }
                if seconds >= wait.report_at && !wait.path.is_empty() {
                    sentences.push(wait.sentence());
                    self.last = Some(description(wait.name, &wait.path));
                    wait.report_at *= 2;
                }
                self.waits.insert(tid, wait);
            }
        }
        sentences.extend(returned(before));
        sentences
    }

    /// Forgets the calls: the worker was stopped, so they did not wait for their files.
    pub fn forget(&mut self) {
        self.waits.clear();
    }

    /// Returns a sentence for each reported call, all of which have returned: the worker has ended.
    pub fn end(&mut self) -> Vec<String> {
        returned(std::mem::take(&mut self.waits)).collect()
    }

    /// Returns whether a thread of the worker has waited in a call on a file for a second.
    pub fn is_silent(&self, worker: u32) -> bool {
        let is_current = |tid: u32, wait: &FileWait| {
            current_call(tid).is_some_and(|(identity, _)| identity == wait.identity)
        };
        let has_ended = proc::threads(worker).is_empty();
        !has_ended
            && self.waits.iter().any(|(tid, wait)| wait.since.elapsed() >= SILENT && is_current(*tid, wait))
    }

    /// Describes the longest of the calls that go on, or the last one that was long; None if there was none.
    pub fn longest(&self) -> Option<String> {
        let mut waits: Vec<_> = self.waits.iter().collect();
        waits.sort_unstable_by_key(|(_, wait)| wait.since);
        let described = waits.into_iter().find_map(|(tid, wait)| {
            let path = path_of(*tid, &current_call(*tid)?.1);
            (!path.is_empty()).then(|| description(wait.name, &path))
        });
        described.or_else(|| self.last.clone())
    }
}

/// Returns a sentence for each of these calls that was reported: they have returned.
fn returned(waits: HashMap<u32, FileWait>) -> impl Iterator<Item = String> {
    waits.into_values().filter(|wait| wait.report_at > REPORTED).map(|wait| {
        let seconds = wait.since.elapsed().as_secs();
        format!("{} answers again: {} took {seconds} s", wait.path, wait.name)
    })
}

/// Describes a call that has not returned.
fn description(name: &str, path: &str) -> String {
    format!("{name} of {path} has not returned")
}

impl FileWait {
    fn sentence(&self) -> String {
        let seconds = self.since.elapsed().as_secs();
        format!("still waiting for {}: {} has not returned for {seconds} s", self.path, self.name)
    }
}

/// Returns the call on a file in which a thread sleeps, with what identifies it.
fn current_call(tid: u32) -> Option<(String, FileCall)> {
    let read = |name| std::fs::read_to_string(format!("/proc/{tid}/{name}")).ok();
    let line = read("syscall")?;
    let call = FileCall::parse(&line)?;
    let cpu_ns = read("schedstat")?.split(' ').next()?.to_string();
    Some((line + &cpu_ns, call))
}

/// Returns the path of a call's file; an empty text if the call waits for something else, such as a pipe or a terminal.
fn path_of(tid: u32, call: &FileCall) -> String {
    let path = match call.target {
        CallTarget::Descriptor(fd) => descriptor(tid, fd),
        CallTarget::Path { directory, address } => {
            let directory = match directory {
                libc::AT_FDCWD => proc::directory(tid),
                fd => descriptor(tid, fd),
            };
            let name = text_at(tid, address);
            name.and_then(|name| Some(directory?.join(name)))
        }
        // The kernel removes the descriptor first, and the last close of a file can then wait for its server.
        CallTarget::Closed => return format!("a file that thread {tid} closes"),
        CallTarget::Unknown => newest_file(tid),
    };
    let path = path.filter(|path| path.is_absolute() && !is_special(path));
    if path.is_none() && call.target == CallTarget::Unknown && proc::descriptors(tid).is_empty() {
        return format!("the end of process {tid}, which closes its files");
    }
    path.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
}

fn is_special(path: &Path) -> bool {
    ["/dev", "/proc", "/sys"].iter().any(|directory| path.starts_with(directory))
}

fn descriptor(tid: u32, fd: i32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{tid}/fd/{fd}")).ok()
}

/// Returns the file with the highest descriptor, which is that of the current work: the call does not name its file.
fn newest_file(tid: u32) -> Option<PathBuf> {
    let names = std::fs::read_dir(format!("/proc/{tid}/fd")).ok()?;
    let mut fds: Vec<i32> = names.filter_map(|name| name.ok()?.file_name().to_str()?.parse().ok()).collect();
    fds.sort_unstable();
    let mut paths = fds.into_iter().rev().filter_map(|fd| descriptor(tid, fd));
    paths.find(|path| path.is_absolute() && !is_special(path))
}

/// Reads a text of the worker. It is in the heap or stack of weir itself.
fn text_at(tid: u32, address: u64) -> Option<PathBuf> {
    let memory = ProcessMemory { pid: tid };
    let mut text = Vec::new();
    while text.len() < PATH_BYTES {
        // A read ends at a page that is not mapped.
        let at = address + text.len() as u64;
        let bytes = memory.bytes(at, 256 - (at % 256) as usize);
        let end = bytes.iter().position(|byte| *byte == 0);
        text.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
        if end.is_some() {
            let text = <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(text);
            return Some(text.into());
        }
        if bytes.is_empty() {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::process::Command;
    use std::sync::mpsc::channel;

    use super::*;

    fn wait_until_it_opens(tid: u32, path: &Path) {
        let end = Instant::now() + Duration::from_secs(20);
        while current_call(tid).is_none_or(|(_, call)| Path::new(&path_of(tid, &call)) != path) {
            assert!(Instant::now() < end, "the thread does not open {}", path.display());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Looks, and returns the sentences that name the file.
    fn look_for(waits: &mut FileWaits, path: &Path) -> Vec<String> {
        let sentences = waits.look(std::process::id(), &|_| {});
        sentences.into_iter().filter(|sentence| sentence.contains(path.to_str().expect("a text"))).collect()
    }

    #[test]
    fn a_call_that_another_one_follows_has_returned() {
        let dir = tempfile::tempdir().expect("a directory");
        let (first, second) = (dir.path().join("first"), dir.path().join("second"));
        assert!(Command::new("mkfifo").args([&first, &second]).status().expect("mkfifo").success());
        let fifos = [first.clone(), second.clone()];
        let (sender, tid) = channel();
        let opener = std::thread::spawn(move || {
            sender.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).expect("the test waits");
            fifos.map(|fifo| File::open(fifo).expect("a FIFO"))
        });
        let tid = tid.recv().expect("its ID");
        let let_go = |fifo: &Path| File::options().write(true).open(fifo).expect("a FIFO");

        wait_until_it_opens(tid, &first);
        let mut waits = FileWaits::default();
        assert!(look_for(&mut waits, &first).is_empty());
        waits.waits.get_mut(&tid).expect("its wait").since -= REPORTED;
        let reported = look_for(&mut waits, &first);
        assert_eq!(
            reported,
            [format!("still waiting for {}: openat has not returned for 10 s", first.display())]
        );
        let _writer = let_go(&first);
        wait_until_it_opens(tid, &second);
        let returned = look_for(&mut waits, &first);
        assert_eq!(returned, [format!("{} answers again: openat took 10 s", first.display())]);
        let _writer = let_go(&second);
        opener.join().expect("it has opened both");
    }
}
