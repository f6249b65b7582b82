//! The words that every part of weir shares. Pure: no system call is made here.

pub mod bench;
pub mod cost;
pub mod duration;
pub mod errno;
pub mod finding;
pub mod flush;
pub mod knee;
pub mod lab;
pub mod number;
pub mod peek;
pub mod run;
pub mod size;
pub mod stats;
pub mod stream;
pub mod top;
pub mod trace;

pub use cost::{Cost, CostModel, Observation};
pub use finding::{Finding, FindingId, Gain, Severity};
pub use knee::{Knee, knee};
pub use size::Size;
pub use stats::{Ratio, Summary};
pub use stream::{Direction, Durability, Mode, StreamKind};
