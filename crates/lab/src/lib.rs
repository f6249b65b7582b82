//! Runs the experiments of /lab and judges them. An experiment is a folder of data: what is expected, a program
//! that shows the fault, a fixed one, and one check for both.

pub mod check;
mod document;
mod error;
mod experiment;
pub mod history;
mod judge;
mod library;
pub mod look;
mod many;
pub mod prediction;
pub mod published;
mod run;
mod stage;
pub mod steps;
pub mod template;
pub mod timing;

pub use document::row;
pub use error::Error;
pub use experiment::{Experiment, Outcome, Theme};
pub use judge::{Seen, fits};
pub use library::{all, find, nearest, source};
pub use many::run_all;
pub use run::{Options, Ran, Result, record, run};
