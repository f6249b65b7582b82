//! Records a command or a process: chooses the engine, starts it, and makes a recording of what it reports.

use std::ffi::OsString;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weir_model::trace::{Engine, Overhead, Prices, Recording};

use crate::assemble::Assembler;
use crate::engine::{self, Ended, now_ns};
use crate::raw::Raw;
use crate::{Error, ebpf, launch};

/// Whom to watch.
#[derive(Debug, Clone)]
pub enum Target {
    /// Runs a command.
    Command(Vec<OsString>),
    /// Attaches to a process.
    Process(u32),
}

/// With which engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// The best one that works.
    #[default]
    Auto,
    /// This one or none.
    Ebpf,
    /// This one or none.
    Ptrace,
    /// This one or none.
    Sample,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whom.
    pub target: Target,
    /// How.
    pub engine: EngineChoice,
    /// Every call.
    pub exact: bool,
    /// Stop after this time.
    pub limit: Option<Duration>,
    /// Set by Ctrl-C.
    pub stop: Arc<AtomicBool>,
    /// What calls cost here.
    pub prices: Prices,
}

/// What seeing one call costs the program, about, in nanoseconds.
fn price_of_a_call(engine: Engine) -> f64 {
    match engine {
        Engine::Ebpf => 300.0,
        Engine::Ptrace => 12_000.0,
        Engine::Sample => 0.0,
    }
}

/// Watches until the target ends, or until it is told to stop, and says everything that was seen.
pub fn record(options: &Options) -> Result<Recording, Error> {
    let begun = now_ns();
    let (engine, reason) = choose(options)?;
    let target = match &options.target {
        Target::Command(command) => engine::Target::Command(launch::start(command)?),
        Target::Process(pid) => engine::Target::Process(*pid),
    };
    let root = target.pid();
    let started = now_ns();
    let assembler = Mutex::new(Assembler::new(started, engine.kind() == Engine::Ebpf));
    let mut sink = |raw: Raw| assembler.lock().unwrap_or_else(PoisonError::into_inner).take(raw);
    let asked =
        engine::Options { exact: options.exact, limit: options.limit, stop: Arc::clone(&options.stop) };
    let kind = engine.kind();
    let ended = match engine {
        Ready::Ebpf(ebpf) => ebpf.run(target, &asked, &mut sink, &mut |_, _| {})?,
    };
    let elapsed_s = seconds(now_ns() - started);
    let assembled = assembler.into_inner().unwrap_or_else(PoisonError::into_inner).finish();
    let overhead = overhead(kind, &ended, seconds(started - begun));
    Ok(Recording {
        command: words(&options.target),
        root,
        engine: kind,
        engine_reason: reason,
        exact: ended.unwatched_ns == 0 && ended.lost_events == 0,
        elapsed_s,
        exit: ended.exit,
        overhead,
        blind: blind(ended.blind, assembled.left_out),
        prices: options.prices,
        processes: assembled.processes,
        files: assembled.files,
        flows: assembled.flows,
        events: assembled.events,
    })
}

/// An engine that works here.
enum Ready {
    Ebpf(ebpf::Engine),
}

impl Ready {
    fn kind(&self) -> Engine {
        match self {
            Self::Ebpf(_) => Engine::Ebpf,
        }
    }
}

/// The engine that was asked for, or the best that works, with the reason why it is not a better one.
fn choose(_options: &Options) -> Result<(Ready, String), Error> {
    ebpf::Engine::new().map(|engine| (Ready::Ebpf(engine), String::new()))
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn words(target: &Target) -> Vec<String> {
    match target {
        Target::Command(command) => command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        Target::Process(_) => Vec::new(),
    }
}

fn overhead(engine: Engine, ended: &Ended, startup_s: f64) -> Overhead {
    Overhead {
        startup_s,
        watched_s: seconds(ended.watched_ns),
        unwatched_s: seconds(ended.unwatched_ns),
        seen_calls: ended.seen_calls,
        lost_events: ended.lost_events,
        cost_s: ended.seen_calls as f64 * price_of_a_call(engine) / 1e9,
    }
}

fn blind(mut sentences: Vec<String>, left_out: u64) -> Vec<String> {
    if left_out > 0 {
        sentences.push(format!("{left_out} events more than are kept; the counters have them"));
    }
    sentences
}
