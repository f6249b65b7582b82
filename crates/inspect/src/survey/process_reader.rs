//! Reads command lines and stream buffers in a child process that the survey can abandon: both are memory of the
//! surveyed process, and reading it can block for ever.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weir_model::Untrusted;
use weir_model::trace::Buffer;
use weir_sys::clock::{now_ns, thread_cpu_ns};
use weir_sys::expendable::{ExpendableChild, Limits, Rights};
use weir_sys::living_thread;
use weir_sys::proc::descriptor;

use crate::process_buffers::ProcessBuffers;

/// The time for which a read may block: longer than a read from swap.
const BLOCKED: Duration = Duration::from_millis(400);
/// The same after several processes of one sample have not answered. There may be many of them.
const MIN_BLOCKED: Duration = Duration::from_millis(50);
/// The whole time for one process: several times that of the largest search of a heap.
const TOTAL: Duration = Duration::from_secs(1);
/// The time after which a process that did not answer is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(30);

/// The result of a request about a process.
#[derive(Debug, PartialEq)]
pub(super) enum Reading<T> {
    Answer(T),
    /// A read blocks, or takes too long.
    NoAnswer,
    /// The time of this sample is over, or no child can be started.
    OutOfTime,
}

/// A request to the child.
#[derive(Debug, Serialize, Deserialize)]
enum Request {
    Command { pid: u32 },
    Buffers { pid: u32, image: ImageState, ended: Vec<u32> },
}

/// State of a process's image, which decides how the child searches for its streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ImageState {
    /// The parent, until the process calls execve(2).
    pub parent: Option<u32>,
    /// The process, or its image, is new since the last snapshot.
    pub is_new: bool,
    /// Search for new streams.
    pub search_again: bool,
}

/// The answer of the child, with the CPU time that it cost.
#[derive(Debug, Serialize, Deserialize)]
struct Answer<T> {
    value: T,
    cpu_ns: u64,
}

/// The child, and the processes that did not answer.
#[derive(Debug, Default)]
pub(super) struct ProcessReader {
    child: Option<ExpendableChild>,
    unanswered: HashMap<u32, Instant>,
    /// Processes whose state the child may drop.
    ended: Vec<u32>,
    deadline: Option<Instant>,
    /// Processes that must not be read.
    avoided: Vec<u32>,
    /// Processes that did not answer in this sample.
    failures: u32,
    cpu_ns: u64,
}

impl ProcessReader {
    /// Begins a sample. No process is asked after the deadline.
    pub fn begin_sample(&mut self, deadline: Instant) {
        (self.deadline, self.failures) = (Some(deadline), 0);
        self.unanswered.retain(|_, since| since.elapsed() < ASK_AGAIN);
    }

    /// Sets the processes that must not be read as the parents of others: reads of their files in /proc block.
    pub fn avoid(&mut self, pids: Vec<u32>) {
        self.avoided = pids;
    }

    /// Returns the CPU time that the children have used for answers.
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_ns
    }

    /// Forgets a process that has ended or executed another image.
    pub fn forget(&mut self, pid: u32) {
        self.unanswered.remove(&pid);
        if self.child.is_some() {
            self.ended.push(pid);
        }
    }

    /// Reads the arguments of a process, separated by spaces; empty if there are none.
    pub fn command(&mut self, pid: u32) -> Reading<Untrusted> {
        self.ask(pid, &Request::Command { pid })
    }

    /// Takes a buffer snapshot of a process. Returns the buffers, and the target of the descriptor of each.
    pub fn buffers(&mut self, pid: u32, image: ImageState) -> Reading<Vec<(Buffer, Untrusted)>> {
        let ended = self.ended.clone();
        let parent = image.parent.filter(|parent| !self.avoided.contains(parent));
        let image = ImageState { parent, ..image };
        let reading = self.ask(pid, &Request::Buffers { pid, image, ended });
        // A child that does not answer is dropped with its state. Otherwise only an answer shows that the request was sent.
        if self.child.is_none() || matches!(reading, Reading::Answer(_)) {
            self.ended.clear();
        }
        reading
    }

    fn ask<T: for<'a> Deserialize<'a>>(&mut self, pid: u32, request: &Request) -> Reading<T> {
        if self.unanswered.contains_key(&pid) {
            return Reading::NoAnswer;
        }
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Reading::OutOfTime;
        }
        if !self.has_child() {
            return Reading::OutOfTime;
        }
        let blocked = (BLOCKED / (1 + self.failures)).max(MIN_BLOCKED);
        let total = left.map_or(TOTAL, |left| left.min(TOTAL));
        let answer = self.answer(request, Limits { blocked, total: Some(total) });
        match answer.and_then(|answer| serde_json::from_slice::<Answer<T>>(&answer).ok()) {
            Some(answer) => {
                self.cpu_ns += answer.cpu_ns;
                Reading::Answer(answer.value)
            }
            None => {
                // The next question starts another child.
                self.child = None;
                self.failures += 1;
                self.unanswered.insert(pid, Instant::now());
                Reading::NoAnswer
            }
        }
    }

    /// Starts the child if there is none. Returns false if none can be started.
    fn has_child(&mut self) -> bool {
        if self.child.is_none() {
            let mut known = HashMap::new();
            let serve = move |request: &[u8], _: &_| serve(&mut known, request);
            self.child = ExpendableChild::start(Rights::ReadingOnly, serve).ok();
        }
        self.child.is_some()
    }

    fn answer(&mut self, request: &Request, limits: Limits) -> Option<Vec<u8>> {
        let request = serde_json::to_vec(request).ok()?;
        self.child.as_mut()?.ask(&request, limits, None).ok()
    }
}

/// Answers a request in the child. `known` holds the walkers of the processes that it has read.
fn serve(known: &mut HashMap<u32, ProcessBuffers>, request: &[u8]) -> Vec<u8> {
    let started_ns = thread_cpu_ns();
    let cost = || thread_cpu_ns() - started_ns;
    let answer = match serde_json::from_slice(request) {
        Ok(Request::Command { pid }) => {
            let value = command(pid);
            serde_json::to_vec(&Answer { value, cpu_ns: cost() })
        }
        Ok(Request::Buffers { pid, image, ended }) => {
            ended.iter().for_each(|pid| drop(known.remove(pid)));
            let value = snapshot(known, pid, image);
            serde_json::to_vec(&Answer { value, cpu_ns: cost() })
        }
        Err(_) => Ok(Vec::new()),
    };
    answer.unwrap_or_default()
}

fn snapshot(
    known: &mut HashMap<u32, ProcessBuffers>,
    pid: u32,
    image: ImageState,
) -> Vec<(Buffer, Untrusted)> {
    if image.is_new {
        known.remove(&pid);
    }
    let new = || image.parent.map(|parent| ProcessBuffers::of_child(None, parent, pid)).unwrap_or_default();
    let buffers = known.entry(pid).or_insert_with(new);
    if image.search_again {
        buffers.search_again(now_ns());
    }
    let with_path = |buffer: Buffer| {
        let path = descriptor(pid, buffer.fd).unwrap_or_default();
        (buffer, path)
    };
    buffers.snapshot(pid).into_iter().map(with_path).collect()
}

/// Returns the arguments separated by spaces, up to 4 KiB; empty if there are none.
fn command(pid: u32) -> Untrusted {
    let mut text = vec![0; 4096];
    let read = std::fs::File::open(format!("/proc/{}/cmdline", living_thread::of(pid)));
    let got = read.and_then(|mut file| std::io::Read::read(&mut file, &mut text)).unwrap_or(0);
    text.truncate(got);
    while text.last() == Some(&0) {
        text.pop();
    }
    text.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    Untrusted::of_bytes(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_has_the_arguments() {
        let mut reader = ProcessReader::default();
        let Reading::Answer(own) = reader.command(std::process::id()) else { panic!("no answer") };
        assert!(own.exact().starts_with(&std::env::args().next().unwrap()), "{own}");
        assert_eq!(reader.command(u32::MAX), Reading::Answer(Untrusted::default()));
        assert!(reader.cpu_ns() > 0);
    }

    #[test]
    fn the_child_gets_the_ended_processes_with_the_next_request_that_is_sent() {
        let (mut reader, image) =
            (ProcessReader::default(), ImageState { parent: None, is_new: true, search_again: false });
        reader.forget(7);
        assert!(reader.ended.is_empty(), "there is no child");
        assert_eq!(reader.command(u32::MAX), Reading::Answer(Untrusted::default()));
        reader.forget(7);
        reader.begin_sample(Instant::now());
        assert_eq!(reader.buffers(u32::MAX, image), Reading::OutOfTime);
        assert_eq!(reader.ended, [7]);
        reader.begin_sample(Instant::now() + Duration::from_secs(60));
        assert_eq!(reader.buffers(u32::MAX, image), Reading::Answer(Vec::new()));
        assert!(reader.ended.is_empty());
    }

    #[test]
    fn after_the_deadline_no_process_is_asked() {
        let mut reader = ProcessReader::default();
        reader.begin_sample(Instant::now());
        assert_eq!(reader.command(std::process::id()), Reading::OutOfTime);
    }
}
