//! The ptrace backend: stops a program at its system calls, without privilege.
//!
//! A process that makes few calls is stopped at each. A process that makes many runs freely in gaps between sampling
//! windows (`overhead_budget`). /proc/PID/io has the totals of a gap, so totals stay exact (`io_account`,
//! `sampling_gaps`).
//!
//! The tracer is a thread of its own, and it detaches by ending: the kernel then detaches all tracees, in any state,
//! without stopping them. The same happens when weir is killed, so no tracee stays stopped. PTRACE_DETACH would require a
//! stop of each tracee, which makes some system calls fail with EINTR.
//!
//! With `exact`, a command can be started under a seccomp filter ([`weir_sys::seccomp`], `seccomp_stops`), which stops
//! it only at recorded calls. Such tracees are never detached: the tracer stays until the last has ended, and the kernel
//! kills them if the tracer is killed.

mod attach;
mod blocked_time;
mod held_exits;
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
use weir_sys::launch::GatedCommand;
use weir_sys::{Error, limits};
use weir_trace_api::{BackendReport, DeferredCleanup, TraceBackend, TraceHooks, TraceOptions, TraceRoot};

use tracer::Tracer;

/// The ptrace backend. It attaches in [`TraceBackend::run`], because only the tracer thread can trace.
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

    /// Runs the tracer on a thread of its own, which calls the hooks, and waits for it. Descendants that still run at the end
    /// are detached.
    fn run(&mut self, options: &TraceOptions, hooks: TraceHooks<'_, '_>) -> Result<BackendReport, Error> {
        let root = self.root.take().ok_or_else(|| unusable("no process is attached"))?;
        let traced = move || {
            let tracer = Tracer::new(root.pid(), options, hooks);
            // SAFETY: the call returns a number.
            (unsafe { libc::gettid() }, tracer.and_then(|tracer| tracer.run(root)))
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("weir-ptrace".into()).spawn_scoped(scope, traced);
            let thread = thread.map_err(|error| unusable(&limits::no_thread(&error)))?;
            let (task, report) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            weir_sys::ptrace::wait_until_gone(task);
            report
        })
    }

    /// Does nothing: the kernel detached all tracees when the tracer thread ended.
    fn detach(self: Box<Self>) -> DeferredCleanup {
        DeferredCleanup::default()
    }
}

/// Returns an error of this backend.
fn unusable(reason: &str) -> Error {
    Error::Backend { backend: "ptrace", reason: reason.to_string() }
}

/// Returns the error of a command whose execve(2) did not succeed.
fn not_started(mut gated: GatedCommand) -> Error {
    match gated.wait_for_exec() {
        Err(error) => error,
        Ok(()) => unusable("the command ended before it called execve(2)"),
    }
}
