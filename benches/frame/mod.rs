//! Helpers of the benchmarks of whole programs: their directory, parts, figures and processes.

pub mod bench_dir;
#[allow(dead_code)] // not every benchmark uses every format
pub mod figure;
pub mod parts;
#[allow(dead_code)] // not every benchmark uses every function
pub mod process;

pub type BoxError = Box<dyn std::error::Error>;
