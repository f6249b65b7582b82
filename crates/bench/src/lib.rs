//! Measures the cost of buffering on this machine: workloads × methods × sizes, in interleaved rounds of samples.
//!
//! [`selection`] turns the user's words into axes, [`plan`] axes into cells. [`directory`] creates the
//! private directories, [`run`] measures the cells in interleaved rounds of one-process samples, and [`document`] turns the
//! samples into the result. The measured loops are in C, one file per method, in `methods/`.

#![deny(unsafe_code)]

pub mod advice;
mod answers;
pub mod axes;
mod cache;
pub mod directory;
mod disturbance;
pub mod document;
pub mod error;
pub mod ffi;
mod figures;
#[cfg(test)]
mod fixture;
mod groups;
pub mod job;
pub mod loop_image;
pub mod machine;
pub mod needs;
mod pilot;
pub mod plan;
pub mod prices;
pub mod published;
mod rounds;
mod rows;
pub mod run;
pub mod sample;
pub mod selection;
pub mod settings;
mod shared;
mod verify;

pub use error::{Error, Result};
