//! Unwind tables and debug information: functions, files and lines of addresses.
#![no_main]

weir_fuzz::target!(|input: &[u8]| weir_inspect::call_sites::fuzzing::image(weir_fuzz::sparse_file(input)));
