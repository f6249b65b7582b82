//! The targets and settings of a trace: one value from the command line to the backend.

use std::ffi::OsString;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use weir_model::trace::Prices;
use weir_sys::inherited::InheritedFds;
use weir_sys::process_identity::ProcessIdentity;

/// The processes to trace. Descendants are traced as well.
#[derive(Debug, Clone)]
pub enum TraceTarget {
    /// A command to start, with its arguments.
    Command(Vec<OsString>),
    /// A process that runs already, by number and start.
    Process(ProcessIdentity),
}

impl Default for TraceTarget {
    fn default() -> Self {
        Self::Command(Vec::new())
    }
}

/// The value of `--engine`: which backend to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackendChoice {
    /// The first backend of ebpf, ptrace, sample whose probe succeeds.
    #[default]
    Auto,
    /// eBPF programs; fails if the kernel or the privileges do not allow them.
    Ebpf,
    /// Stops at system calls; fails if the process may not be traced.
    Ptrace,
    /// Sampling of /proc (`sample`).
    Proc,
}

impl BackendChoice {
    /// The names that `--engine` accepts, in the order of the variants.
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
#[allow(missing_docs)]
pub struct TraceOptions {
    pub target: TraceTarget,
    pub backend: BackendChoice,
    /// Record every call, whatever it costs: no sampling.
    pub exact: bool,
    /// File with the kernel's BTF, for the eBPF backend. None: it is searched.
    pub btf: Option<std::path::PathBuf>,
    /// Emit each call as an event, with a buffer snapshot before it (`weir lab --step`).
    pub every_call: bool,
    /// Start the command under a seccomp filter that stops it only at the calls that are recorded
    /// ([`weir_sys::seccomp`]). Takes effect with the ptrace backend and `exact`.
    pub seccomp: bool,
    /// The inherited descriptors that weir keeps open after it has started a command.
    pub inherited: InheritedFds,
    /// Detach after this time; None: trace until the root process ends.
    pub limit: Option<Duration>,
    /// Set by the handler of Ctrl-C. The backend then detaches from an attached process. A command received the signal
    /// from the terminal itself, so it is traced until it ends.
    pub stop: Arc<AtomicBool>,
    /// The measured cost of system calls on this machine.
    pub prices: Prices,
}
