//! Runs the labelled set: reads the set, makes a workspace for each program, starts and traces it, and counts the score.

pub mod advice;
pub mod campaign;
pub mod gain;
pub mod judge;
pub mod score;
pub mod set;
pub mod start;
pub mod workspace;
