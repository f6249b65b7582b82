//! Changes the buffering of other processes without changing their programs: `weir run` and `weir flush`.
//!
//! The README has a table of the modules.

pub mod coalesce;
mod delay;
pub mod drain;
mod foreign_file;
pub mod launch;
pub mod plan;
pub mod preload;
pub mod pty;
mod rescue;
pub mod supervise;
