//! What to trace and how: one value from the command line to the backend.

use std::ffi::OsString;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use weir_model::trace::Prices;
use weir_sys::inherited::InheritedFds;

/// The processes to trace. Descendants are traced as well.
#[derive(Debug, Clone)]
pub enum TraceTarget {
    /// A command to start, with its arguments.
    Command(Vec<OsString>),
    /// A running process, by its number.
    Process(u32),
}

impl Default for TraceTarget {
    fn default() -> Self {
        Self::Command(Vec::new())
    }
}

/// The value of `--engine`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackendChoice {
    /// The best backend that works here.
    #[default]
    Auto,
    /// Programs in the kernel, or an error.
    Ebpf,
    /// Stops at system calls, or an error.
    Ptrace,
    /// Sampling of /proc.
    Proc,
}

impl BackendChoice {
    /// The names on the command line, in the order of the variants.
    pub const NAMES: [&str; 4] = ["auto", "ebpf", "ptrace", "sample"];
}

impl FromStr for BackendChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "auto" => Ok(Self::Auto),
            "ebpf" => Ok(Self::Ebpf),
            "ptrace" => Ok(Self::Ptrace),
            "sample" => Ok(Self::Proc),
            _ => Err(format!("'{name}' is none of {}", Self::NAMES.join(", "))),
        }
    }
}

/// The options of one trace.
#[derive(Debug, Clone, Default)]
pub struct TraceOptions {
    /// The processes to trace.
    pub target: TraceTarget,
    /// The backend to use.
    pub backend: BackendChoice,
    /// Record every call, whatever it costs: no sampling.
    pub exact: bool,
    /// Emit each call as an event, with a buffer snapshot before it (`weir lab --step`).
    pub every_call: bool,
    /// Start the command under a seccomp filter that stops it only at the calls that are recorded
    /// ([`weir_sys::seccomp`]). Takes effect with the ptrace backend and `exact`.
    pub seccomp: bool,
    /// The standard descriptors that weir itself keeps open after it has started a command.
    pub inherited: InheritedFds,
    /// Detach after this time.
    pub limit: Option<Duration>,
    /// Set by Ctrl-C. A process that was attached to is detached; a command received the signal itself and is traced
    /// until it ends.
    pub stop: Arc<AtomicBool>,
    /// What system calls cost on this machine.
    pub prices: Prices,
}
