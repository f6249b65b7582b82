//! The engine for everybody: sees a program's calls by stopping it at them, which takes no privilege.
//!
//! A process that makes few calls is stopped at each. One that makes many is let run, and caught now and then
//! for a burst ([`budget`]); what it does in between is known by /proc/PID/io, so totals stay exact
//! ([`account`], [`gaps`]).
//!
//! The tracer is a thread of its own, and letting everything go is its end: the kernel then detaches all
//! tracees, whatever they are doing, without stopping them. That is also what happens when weir is killed, and
//! why no tracee can be left stopped. To detach one by one, each would have to be stopped first, and some
//! system calls end with EINTR by that.
//!
//! A command whose every call is to be seen can be started under a seccomp filter ([`weir_sys::seccomp`],
//! [`filtered`]), which stops it at the calls that are followed and at no others. Then nobody is let go: the tracer
//! stays until all have ended, and if it is killed, they are.

mod account;
mod attach;
mod budget;
mod calls;
mod delay;
mod filtered;
mod gaps;
mod life;
mod stops;
mod tracer;
mod tracers;

use weir_sys::Error;
use weir_sys::launch::GatedCommand;

use crate::engine::{Ended, Look, Options, SendSink, Target, Tick};
use tracer::Tracer;

/// Watches until the target has ended, the time is over or weir is to stop. Descendants that live on are let
/// go. The callbacks are called from another thread while this one waits.
pub fn run(
    target: Target,
    options: &Options,
    sink: &mut SendSink<'_>,
    look: &mut dyn Look,
    tick: &mut Tick<'_>,
) -> Result<Ended, Error> {
    let hooks = Hooks { sink, look, tick };
    let traced = move || {
        let tracer = Tracer::new(target.pid(), options, hooks);
        // SAFETY: asks for a number.
        (unsafe { libc::gettid() }, tracer.and_then(|tracer| tracer.run(target)))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("weir-ptrace".into()).spawn_scoped(scope, traced);
        let thread = thread.map_err(|error| unusable(&format!("a thread cannot be started: {error}")))?;
        let (task, ended) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        weir_sys::ptrace::wait_until_gone(task);
        ended
    })
}

/// Whom the tracer tells, and whom it asks.
struct Hooks<'h, 'c> {
    sink: &'h mut SendSink<'c>,
    look: &'h mut dyn Look,
    tick: &'h mut Tick<'c>,
}

fn unusable(reason: &str) -> Error {
    Error::Backend { backend: "ptrace", reason: reason.to_string() }
}

/// The error of a command that did not get as far as execve(2).
fn not_started(mut gated: GatedCommand) -> Error {
    match gated.answer() {
        Err(error) => error,
        Ok(()) => unusable("the command was ended before it began"),
    }
}
