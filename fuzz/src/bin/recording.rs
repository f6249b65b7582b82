//! A recording for `weir trace --replay`, and its findings, screen and document.
#![no_main]

use weir_model::trace::Recording;

weir_fuzz::target!(|input: &[u8]| {
    if let Ok(recording) = serde_json::from_slice::<Recording>(input) {
        weir_fuzz::show(&recording);
    }
});
