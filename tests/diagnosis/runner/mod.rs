//! Runs the labelled set: what the set says, a private place for each program, its start, the trace, the score.

pub mod gain;
pub mod judge;
pub mod place;
pub mod score;
pub mod set;
pub mod start;
