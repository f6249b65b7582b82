//! The one place where the command line meets the recorder.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use weir_model::trace::{Prices, Recording};
use weir_probe::engine::Rest;
use weir_probe::trace::{self, EngineChoice, Options, Target};
use weir_sys::inherited::InheritedFds;

use super::Engine;
use super::status::Failure;

/// What to record.
pub struct Request {
    /// The command with its arguments; empty when attached.
    pub command: Vec<OsString>,
    /// The process to attach to.
    pub pid: Option<u32>,
    /// Where to see the calls.
    pub engine: Engine,
    /// See every call.
    pub exact: bool,
    /// Tell of each call, with the buffers before it.
    pub every_call: bool,
    /// Stop the command by a seccomp filter; only the ptrace engine can.
    pub seccomp: bool,
    /// What weir needs itself of the descriptors that a command gets.
    pub keep: InheritedFds,
    /// Stop watching after this.
    pub limit: Option<Duration>,
    /// Set when watching is to end.
    pub stop: Arc<AtomicBool>,
    /// What calls cost here, as far as known.
    pub prices: Prices,
}

/// Records until the program ends, the time is over, or watching is to end.
/// A command has ended when the rest has been dropped.
pub fn record(request: Request) -> Result<(Recording, Rest), Failure> {
    let target = match request.pid {
        Some(pid) => Target::Process(pid),
        None => Target::Command(request.command),
    };
    let engine = match request.engine {
        Engine::Auto if !request.seccomp => EngineChoice::Auto,
        Engine::Ebpf => EngineChoice::Ebpf,
        Engine::Auto | Engine::Ptrace => EngineChoice::Ptrace,
        Engine::Sample => EngineChoice::Sample,
    };
    let Request { exact, every_call, seccomp, keep, limit, stop, prices, .. } = request;
    let options = Options { target, engine, exact, every_call, seccomp, keep, limit, stop, prices };
    Ok(trace::record(&options)?)
}
