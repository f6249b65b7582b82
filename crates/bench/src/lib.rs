//! Workloads × methods → samples: what buffering costs on this machine.
//!
//! [`plan`] makes cells from axes, [`place`] a private directory for each place, [`run`] measures the
//! cells in interleaved rounds of one-process samples, [`document`] makes the result from what was
//! measured. The measured loops are C, one file a method, in `methods/`.

#![deny(unsafe_code)]

mod answers;
pub mod axes;
mod cache;
mod disturb;
pub mod document;
pub mod error;
pub mod ffi;
mod figures;
#[cfg(test)]
mod fixture;
mod groups;
pub mod image;
pub mod machine;
pub mod needs;
mod pilot;
pub mod place;
pub mod plan;
pub mod prices;
pub mod published;
mod rounds;
mod rows;
pub mod run;
pub mod sample;
mod verify;

pub use error::{Error, Result};
