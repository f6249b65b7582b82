//! The ring buffer itself: lengths and positions.
#![no_main]

weir_fuzz::target!(|input: &[u8]| {
    let Some((produced, bytes)) = input.split_first_chunk::<2>() else { return };
    weir_trace_ebpf::fuzzing::ring(bytes, u16::from_le_bytes(*produced)).expect("a ring in memory");
});
