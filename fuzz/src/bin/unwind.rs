//! A sampled stack, and the unwind tables by which its callers are found. The first two bytes are the length of the sample.
#![no_main]

weir_fuzz::target!(|input: &[u8]| {
    let Some((length, rest)) = input.split_first_chunk::<2>() else { return };
    let (record, image) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
    weir_inspect::call_sites::fuzzing::stack(weir_fuzz::file(image), record);
});
