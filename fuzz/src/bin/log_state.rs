//! The state file of `weir log --follow`, and the first line of a spill file.
#![no_main]

weir_fuzz::target!(|input: &[u8]| {
    weir_collect::fuzzing::spill_header(input);
    if let Ok(text) = std::str::from_utf8(input) {
        weir_collect::fuzzing::state(text);
    }
});
