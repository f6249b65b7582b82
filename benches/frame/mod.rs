//! What the benchmarks of whole programs share: the bed that they run in, their parts, their figures.

pub mod bed;
#[allow(dead_code)] // not every benchmark shows every form
pub mod figure;
pub mod parts;
#[allow(dead_code)] // nor looks at its processes in every way
pub mod process;

pub type Failed = Box<dyn std::error::Error>;
