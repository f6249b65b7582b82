//! Samples the small reads and writes of processes with perf events on the kernel's tracepoints of read(2) and write(2), in the
//! thread that [`super::CallSamples`] starts.
//!
//! An open event, even a disabled one, makes each system call of each process slower (the kernel sets SYSCALL_WORK_SYSCALL_TRACEPOINT
//! for all threads: by a seventh for a read of one byte). So the events are open for some milliseconds only.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use weir_model::Direction;
use weir_model::trace::IoTotals;
use weir_sys::descriptors::{ClosingChild, close_by_child};
use weir_sys::maps::MappedRegion;
use weir_sys::{breakpoint, proc, tracefs};

use super::perf_event::PerfEvent;
use super::stack_sample::StackSample;

/// The fewest calls between two polls that are worth a sample: those of 0.1 s at 10,000 calls per second.
const MIN_CALLS: u64 = 1_000;
/// Calls are small if their mean size in bytes is below this.
const MAX_BYTES: u64 = 1_024;
/// The kernel samples one call of this many: a prime, so that the samples do not follow the period of a loop.
const PERIOD: u64 = 97;
/// The longest time for which events are open: twice the time that the slowest sampled calls need for one sample.
const MAX_OPEN: Duration = Duration::from_millis(20);
/// The pause between two checks for samples.
const LOOK_PAUSE: Duration = Duration::from_micros(500);
/// Limit of samples of a process. They are some intervals apart, so that they include later phases of the program.
const MAX_SAMPLES: usize = 8;
/// Limit of sampled threads of a process.
const MAX_THREADS: usize = 4;
/// Limit of samples of a recording: each may need another image to be read.
const MAX_ALL_SAMPLES: usize = 128;

/// An event that is enabled on one thread for its reads or its writes.
struct EnabledEvent {
    direction: Direction,
    event: PerfEvent,
}

/// State of a process at the last poll.
#[derive(Default)]
struct SampledProcess {
    totals: IoTotals,
    enabled: Vec<EnabledEvent>,
    /// The direction of the last events.
    last: Option<Direction>,
    samples: usize,
    /// The code mappings when the first event was enabled; those of a later dlopen(3) are missing.
    code: Option<Arc<[MappedRegion]>>,
}

/// A sampled call whose call site is not looked up yet.
pub(super) struct ObservedCall {
    pub pid: u32,
    pub direction: Direction,
    pub sample: StackSample,
    pub code: Arc<[MappedRegion]>,
}

/// The state of the thread.
#[derive(Default)]
pub(super) struct CallSampler {
    processes: HashMap<u32, SampledProcess>,
    calls: Vec<ObservedCall>,
    /// A disabled event of each tracepoint that is enabled: at the close of the last one the kernel waits until no processor
    /// executes the tracepoint (tracepoint_synchronize_unregister), which takes some 30 ms.
    last_events: HashMap<u64, OwnedFd>,
    closing: Vec<ClosingChild>,
}

impl CallSampler {
    /// Enables events for a process that has made small calls since the last poll. Reads a file of /proc, and opens at most
    /// [`MAX_THREADS`] events. Enables none for a process with enough samples, and does nothing without the rights.
    ///
    /// If the calls of both directions are small, the polls alternate between them: the kernel closes one tracepoint after the
    /// other, and the second one would slow down calls for 30 ms more.
    pub fn poll(&mut self, pid: u32) {
        let Some(tracepoints) = tracepoints() else { return };
        let process = self.processes.entry(pid).or_default();
        if process.samples >= MAX_SAMPLES || self.calls.len() >= MAX_ALL_SAMPLES {
            return;
        }
        let Some(totals) = proc::io(pid) else { return };
        let since = totals.since(std::mem::replace(&mut process.totals, totals));
        let is_small = |calls: u64, bytes: u64| calls >= MIN_CALLS && bytes / calls < MAX_BYTES;
        let directions = [
            (Direction::In, since.read_calls, since.read_bytes, tracepoints[0]),
            (Direction::Out, since.write_calls, since.written_bytes, tracepoints[1]),
        ];
        let mut small = directions.into_iter().filter(|(_, calls, bytes, _)| is_small(*calls, *bytes));
        let (Some(first), second) = (small.next(), small.next()) else { return };
        let (direction, _, _, number) = second.filter(|_| process.last == Some(first.0)).unwrap_or(first);
        process.last = Some(direction);
        process.code.get_or_insert_with(|| super::code(pid));
        if let Entry::Vacant(last_event) = self.last_events.entry(number)
            && let Ok(event) = breakpoint::open(&breakpoint::tracepoint(number, PERIOD), 0)
        {
            last_event.insert(event);
        }
        let threads = proc::threads(pid).into_iter().take(MAX_THREADS);
        let events = threads.filter_map(|tid| enable(tid, number));
        process.enabled.extend(events.map(|event| EnabledEvent { direction, event }));
    }

    /// Collects a sample of each enabled event, and closes the events. Waits for the samples, at most for [`MAX_OPEN`].
    pub fn collect(&mut self) {
        if self.last_events.is_empty() {
            return;
        }
        let end = Instant::now() + MAX_OPEN;
        while self.take_samples() && Instant::now() < end {
            std::thread::sleep(LOOK_PAUSE);
        }
        self.processes.values_mut().for_each(|process| process.enabled.clear());
        self.closing.retain(|child| !child.has_ended());
        self.closing.extend(close_by_child(self.last_events.drain().map(|(_, event)| event).collect()));
    }

    /// Takes the available samples. Returns whether an event has none yet.
    fn take_samples(&mut self) -> bool {
        let mut is_waiting = false;
        for (&pid, process) in &mut self.processes {
            let Some(code) = &process.code else { continue };
            process.enabled.retain_mut(|one| {
                let Some(sample) = one.event.take_events().and_then(|events| events.sample) else {
                    return true;
                };
                process.samples += 1;
                self.calls.push(ObservedCall {
                    pid,
                    direction: one.direction,
                    sample,
                    code: Arc::clone(code),
                });
                false
            });
            is_waiting |= !process.enabled.is_empty();
        }
        is_waiting
    }

    /// Ends the samples of an image that was executed until `end_ns`, CLOCK_MONOTONIC, at execve(2) or at the end of the process.
    /// Later samples are calls of its next image, whose code is another.
    pub fn end(&mut self, pid: u32, end_ns: u64) {
        self.processes.remove(&pid);
        self.calls.retain(|call| call.pid != pid || call.sample.ns < end_ns);
    }

    /// Returns the samples of all processes.
    pub fn finish(self) -> Vec<ObservedCall> {
        let _closed = close_by_child(self.last_events.into_values().collect());
        self.calls
    }
}

/// Enables an event that samples one of the next calls of a thread, by the number of their tracepoint. None if
/// perf_event_open(2) fails, as for a thread that has ended.
fn enable(tid: u32, tracepoint: u64) -> Option<PerfEvent> {
    PerfEvent::enable(&breakpoint::tracepoint(tracepoint, PERIOD), tid, 1).ok()
}

/// Returns the numbers of the tracepoints at the begin of read(2) and write(2); None without the rights to trace the kernel.
pub(super) fn tracepoints() -> Option<[u64; 2]> {
    static NUMBERS: OnceLock<Option<[u64; 2]>> = OnceLock::new();
    let number = |call: &str| tracefs::tracepoint(&format!("syscalls/sys_enter_{call}"));
    *NUMBERS.get_or_init(|| Some([number("read")?, number("write")?]))
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::call_sites::small_calls::named;

    static STOP: AtomicBool = AtomicBool::new(false);

    #[inline(never)]
    fn writes_a_byte(file: &mut File) {
        file.write_all(b"x").unwrap();
    }

    #[test]
    fn small_writes_of_this_program_are_sampled_with_their_descriptor() {
        if tracepoints().and_then(|[_, write]| enable(std::process::id(), write)).is_none() {
            let name = "small_writes_of_this_program_are_sampled_with_their_descriptor";
            return crate::call_sites::tests::skip(name, "no rights to trace the kernel");
        }
        let mut null = OpenOptions::new().write(true).open("/dev/null").unwrap();
        let fd = null.as_raw_fd();
        let writer = std::thread::spawn(move || {
            while !STOP.load(Ordering::SeqCst) {
                writes_a_byte(&mut null);
            }
        });
        let (pid, mut samples) = (std::process::id(), CallSampler::default());
        // The other tests run as threads of this process: it is polled until the writer was sampled.
        let is_sampled = |samples: &CallSampler| {
            samples.calls.iter().any(|one| one.sample.registers.argument as i32 == fd)
        };
        for _ in 0..2_000 {
            samples.poll(pid);
            samples.collect();
            if let Some(process) = samples.processes.get_mut(&pid) {
                process.samples = 0;
            }
            samples.calls.retain(|one| one.sample.registers.argument as i32 == fd);
            if is_sampled(&samples) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        STOP.store(true, Ordering::SeqCst);
        writer.join().unwrap();
        let calls = named(&samples.finish(), 0);
        let call = calls.iter().find(|call| call.fd == fd).expect("a sample of the writer");
        assert_eq!((call.pid, call.direction), (pid, Direction::Out));
        let own: Vec<_> = call.call_site.own_frames().collect();
        let name = own.iter().find_map(|frame| frame.function.as_ref()).expect("a name");
        assert!(name.exact().contains("writes_a_byte"), "{own:#?}");
    }

    #[test]
    fn a_sample_after_the_end_of_the_image_is_dropped() {
        let mut program = Command::new("dd").args(["if=/dev/zero", "of=/dev/null", "bs=1"]).spawn().unwrap();
        let pid = program.id();
        if tracepoints().and_then(|[_, write]| enable(pid, write)).is_some() {
            let mut samples = CallSampler::default();
            let mut sampled_before = |end_ns: u64| {
                samples.poll(pid);
                samples.collect();
                samples.end(pid, end_ns);
                std::mem::take(&mut samples.calls).len()
            };
            assert_eq!((0..100).map(|_| sampled_before(1)).max(), Some(0));
            assert!((0..100).any(|_| sampled_before(u64::MAX) >= 1), "dd is never sampled");
        } else {
            let name = "a_sample_after_the_end_of_the_image_is_dropped";
            crate::call_sites::tests::skip(name, "no rights to trace the kernel");
        }
        program.kill().unwrap();
        program.wait().unwrap();
    }

    #[test]
    fn few_calls_are_not_sampled() {
        let mut samples = CallSampler::default();
        let pid = std::process::id();
        let first = SampledProcess { totals: proc::io(pid).unwrap(), ..SampledProcess::default() };
        samples.processes.insert(pid, first);
        samples.processes.get_mut(&pid).unwrap().totals.write_calls = u64::MAX;
        samples.processes.get_mut(&pid).unwrap().totals.read_calls = u64::MAX;
        samples.poll(pid);
        assert!(samples.processes[&pid].enabled.is_empty());
    }
}
