//! Requests to the metrics of `weir log`.
#![no_main]

weir_fuzz::target!(|input: &[u8]| weir_collect::fuzzing::request(input));
