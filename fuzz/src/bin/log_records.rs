//! Records that arrive at `weir log`, in each framing. The first byte chooses the framing, the second the length of the
//! first part.
#![no_main]

weir_fuzz::target!(|input: &[u8]| {
    if let [kind, first_part, bytes @ ..] = input {
        weir_collect::fuzzing::records(bytes, *kind, usize::from(*first_part));
    }
});
