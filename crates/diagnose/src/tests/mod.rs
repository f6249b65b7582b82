//! Each rule on a program that has it, on its repaired twin, and at the edge between.

mod copies;
mod durability;
mod errors;
mod generated;
mod loss;
mod order;
mod random;
mod reads;
mod renames;
mod small_calls;
mod whole;
