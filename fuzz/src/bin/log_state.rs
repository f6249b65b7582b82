//! The state file of `weir log --follow`.
#![no_main]

weir_fuzz::target!(|input: &[u8]| {
    if let Ok(text) = std::str::from_utf8(input) {
        weir_collect::fuzzing::state(text);
    }
});
