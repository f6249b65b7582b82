//! Each rule on a program that has it, its repaired twin, and the edge between.
