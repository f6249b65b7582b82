//! Runs the experiments of /lab and judges their results. An experiment is a folder of data: the expected values, a
//! program with a fault, the fixed program, and one check for both.

pub mod check;
pub mod comparison;
mod document;
mod error;
mod experiment;
pub mod history;
pub mod json_query;
mod judge;
mod library;
pub mod page;
pub mod prediction;
pub mod published;
mod run;
mod run_all;
mod stage;
pub mod steps;
pub mod template;
pub mod timing;

pub use document::row;
pub use error::Error;
pub use experiment::{Experiment, Outcome, Theme};
pub use judge::{CheckedValue, fits};
pub use library::{all, find, nearest, source};
pub use run::{ExperimentRun, LabOptions, VersionRun, record, run};
pub use run_all::run_all;
