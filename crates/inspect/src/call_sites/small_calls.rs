//! Finds the call sites of small reads and writes: while a process makes many of them, a perf event on the kernel's tracepoint
//! of read(2) or write(2) samples one in 97, with its stack. It needs the rights to trace the kernel; without them there are no samples.
//!
//! A thread opens the events, waits for the samples, and closes the events. An open waits for the close of the last event of any
//! program, which takes some 30 ms; a tracer whose tracees are stopped must not wait for it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use weir_model::trace::SampledCall;
use weir_sys::clock::now_ns;

use super::call_sampler::{CallSampler, ObservedCall, tracepoints};
use super::naming::SampleNames;

/// The time for which the end of a recording waits for the samples: several times that of an open.
const MAX_FINISH: Duration = Duration::from_millis(500);

/// A task of the thread.
enum Request {
    Poll(u32),
    /// The image of a process was executed until this CLOCK_MONOTONIC time.
    End(u32, u64),
    Finish(Sender<Vec<ObservedCall>>),
}

/// The sampled small calls of all processes.
#[derive(Default)]
pub struct CallSamples {
    /// None before the first poll, and without a thread.
    requests: Option<Sender<Request>>,
    is_started: bool,
}

impl CallSamples {
    /// Samples the next calls of a process if it has made small ones since the last poll. Does not wait.
    pub fn poll(&mut self, pid: u32) {
        if !std::mem::replace(&mut self.is_started, true) && tracepoints().is_some() {
            self.requests = start();
        }
        self.send(Request::Poll(pid));
    }

    /// Ends the samples of an image, at execve(2) or at the end of the process. Does not wait.
    pub fn end(&mut self, pid: u32) {
        self.send(Request::End(pid, now_ns()));
    }

    /// Returns the sampled calls with their call sites. `began_ns` is time 0 of the recording.
    pub fn finish(self, began_ns: u64) -> Vec<SampledCall> {
        let (sender, calls) = channel();
        self.send(Request::Finish(sender));
        named(&calls.recv_timeout(MAX_FINISH).unwrap_or_default(), began_ns)
    }

    fn send(&self, request: Request) {
        // Without a thread there are no samples.
        let _sent = self.requests.as_ref().map(|requests| requests.send(request));
    }
}

/// Returns the calls with their call sites. `began_ns` is time 0 of the recording.
pub(super) fn named(calls: &[ObservedCall], began_ns: u64) -> Vec<SampledCall> {
    let mut names = SampleNames::new(began_ns);
    let named = |call: &ObservedCall| SampledCall {
        pid: call.pid,
        fd: call.sample.registers.argument as i32,
        direction: call.direction,
        call_site: names.call_site(call.pid, &call.code, &call.sample, false),
    };
    calls.iter().map(named).collect()
}

/// Starts the thread. It ends when the sender is dropped.
fn start() -> Option<Sender<Request>> {
    let (sender, requests) = channel();
    let _detached =
        std::thread::Builder::new().name("weir-sampler".into()).spawn(move || serve(&requests)).ok()?;
    Some(sender)
}

fn serve(requests: &Receiver<Request>) {
    let mut sampler = CallSampler::default();
    while let Ok(first) = requests.recv() {
        // The processes that are polled at once are sampled at once.
        for request in std::iter::once(first).chain(requests.try_iter()) {
            match request {
                Request::Poll(pid) => sampler.poll(pid),
                Request::End(pid, end_ns) => sampler.end(pid, end_ns),
                Request::Finish(answer) => {
                    let _received = answer.send(sampler.finish());
                    return;
                }
            }
        }
        sampler.collect();
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use weir_model::Direction;

    use super::*;

    #[test]
    fn small_calls_of_a_program_are_sampled_by_the_thread() {
        if tracepoints().is_none() {
            let name = "small_calls_of_a_program_are_sampled_by_the_thread";
            return crate::call_sites::tests::skip(name, "no rights to trace the kernel");
        }
        let mut program = Command::new("dd").args(["if=/dev/zero", "of=/dev/null", "bs=1"]).spawn().unwrap();
        let sampled = || {
            let mut samples = CallSamples::default();
            for _ in 0..10 {
                samples.poll(program.id());
                std::thread::sleep(Duration::from_millis(20));
            }
            samples.finish(0)
        };
        let calls = (0..50).map(|_| sampled()).find(|calls| !calls.is_empty()).expect("a sample of dd");
        program.kill().unwrap();
        program.wait().unwrap();
        let descriptor = |call: &SampledCall| if call.direction == Direction::In { 0 } else { 1 };
        assert!(
            calls.iter().all(|call| call.pid == program.id() && call.fd == descriptor(call)),
            "{calls:?}"
        );
    }
}
