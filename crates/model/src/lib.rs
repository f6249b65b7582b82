//! Types that all crates share: recordings, findings, the results of every verb, statistics, costs and units.
//!
//! This crate is pure: it makes no system calls.

pub mod advise;
pub mod bench;
mod byte_text;
pub mod copy;
pub mod cost;
mod distinct;
pub mod doctor;
pub mod duration;
pub mod errno;
pub mod estimate;
pub mod finding;
pub mod flush;
pub mod fork_copy;
pub mod knee;
pub mod lab;
pub mod log;
pub mod number;
pub mod peek;
pub mod pipe;
pub mod run;
pub mod runtime;
mod shell_quote;
pub mod size;
pub mod stats;
pub mod stream;
pub mod top;
pub mod trace;
mod untrusted;

pub use byte_text::{carried_byte, os_string_of, text_of, text_of_bytes};
pub use cost::{Cost, CostModel, Observation};
pub use distinct::distinct;
pub use finding::{Finding, FindingId, Gain, Severity};
pub use knee::{Knee, knee};
pub use runtime::{
    DIRECT_READERS, DIRECT_WRITERS, Logger, Runtime, RuntimeFix, RuntimeFixes, RuntimeId, RuntimeLimits,
    SourceLanguage,
};
pub use shell_quote::shell_quoted;
pub use size::Size;
pub use stats::{Ratio, Summary};
pub use stream::{Direction, Durability, Mode, StreamKind};
pub use untrusted::{Untrusted, escaped_lines, is_invisible, obeyed_by_terminals};
