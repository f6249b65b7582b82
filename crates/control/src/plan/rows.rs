//! Rows of the plan: one for each option.

pub use weir_model::run::{Effect, PlanRow, Technique};
