//! Changes other processes so that their bytes come in time, fast, and whole; never touches their programs.

pub mod coalesce;
mod delay;
pub mod drain;
pub mod launch;
pub mod plan;
pub mod preload;
pub mod pty;
mod rescue;
pub mod runtimes;
pub mod supervise;
