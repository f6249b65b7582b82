//! The debug information of a Rust program: memory layouts.
#![no_main]

weir_fuzz::target!(|input: &[u8]| weir_walkers::fuzzing::rust_types(weir_fuzz::sparse_file(input)));
