//! The ptrace backend: stops a program at its system calls, without privilege.
//!
//! A process that makes few calls is stopped at each. A process that makes many runs freely in gaps between sampling
//! windows ([`budget`]). /proc/PID/io has the totals of a gap, so totals stay exact ([`account`], [`gaps`]).
//!
//! The tracer is a thread of its own, and letting everything go is its end: the kernel then detaches all
//! tracees, whatever they are doing, without stopping them. That is also what happens when weir is killed, and
//! why no tracee can be left stopped. To detach one by one, each would have to be stopped first, and some
//! system calls end with EINTR by that.
//!
//! A command whose every call is to be seen can be started under a seccomp filter ([`weir_sys::seccomp`],
//! [`filtered`]), which stops it at the calls that are followed and at no others. Then nobody is let go: the tracer
//! stays until all have ended, and if it is killed, they are.

mod attach;
mod io_account;
mod lifecycle;
mod other_tracers;
mod overhead_budget;
mod sampling_gaps;
mod scheduling_delay;
mod seccomp_stops;
mod stops;
mod syscalls;
mod tracer;

use weir_model::trace::BackendKind;
use weir_sys::Error;
use weir_sys::launch::GatedCommand;
use weir_trace_api::{BackendReport, DeferredCleanup, TraceBackend, TraceHooks, TraceOptions, TraceRoot};

use tracer::Tracer;

/// The backend. It holds nothing of the kernel's before [`TraceBackend::run`]: only the tracer's own thread can attach.
#[derive(Debug, Default)]
pub struct PtraceBackend {
    root: Option<TraceRoot>,
}

impl TraceBackend for PtraceBackend {
    fn probe(_options: &TraceOptions) -> Result<Self, Error> {
        Ok(Self::default())
    }

    fn kind(&self) -> BackendKind {
        BackendKind::Ptrace
    }

    fn attach(&mut self, root: TraceRoot) -> Result<(), Error> {
        self.root = Some(root);
        Ok(())
    }

    /// Descendants that live on at the end are detached. The hooks are called from another thread while this one waits.
    fn run(&mut self, options: &TraceOptions, hooks: TraceHooks<'_, '_>) -> Result<BackendReport, Error> {
        let root = self.root.take().ok_or_else(|| unusable("there is nothing to trace"))?;
        let traced = move || {
            let tracer = Tracer::new(root.pid(), options, hooks);
            // SAFETY: asks for a number.
            (unsafe { libc::gettid() }, tracer.and_then(|tracer| tracer.run(root)))
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("weir-ptrace".into()).spawn_scoped(scope, traced);
            let thread = thread.map_err(|error| unusable(&format!("a thread cannot be started: {error}")))?;
            let (task, ended) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            weir_sys::ptrace::wait_until_gone(task);
            ended
        })
    }

    /// The kernel has detached all tracees at the end of the tracer's thread.
    fn detach(self: Box<Self>) -> DeferredCleanup {
        DeferredCleanup::default()
    }
}

fn unusable(reason: &str) -> Error {
    Error::Backend { backend: "ptrace", reason: reason.to_string() }
}

/// The error of a command that did not get as far as execve(2).
fn not_started(mut gated: GatedCommand) -> Error {
    match gated.wait_for_exec() {
        Err(error) => error,
        Ok(()) => unusable("the command was ended before it began"),
    }
}
