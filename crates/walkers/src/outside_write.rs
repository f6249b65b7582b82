//! Terms that another process must keep to if it writes the pending bytes of a stream.

/// The terms of a write from outside. By default weir may write the bytes at any time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutsideWrite {
    /// The reason why only the program can write the bytes while it lives; None if weir can.
    pub early_refusal: Option<&'static str>,
    /// The same after the end of the program: weir then saves the bytes in a file of their own.
    pub refusal: Option<&'static str>,
    /// The bytes are records that end with this byte. One write to a pipe has whole records, as the program's own.
    pub record_end: Option<u8>,
}

impl OutsideWrite {
    /// Returns the terms of bytes that only the program can write.
    pub(crate) fn never(why: &'static str) -> OutsideWrite {
        OutsideWrite { early_refusal: Some(why), refusal: Some(why), record_end: None }
    }

    /// Returns the terms of bytes that weir can write when the program has ended.
    pub(crate) fn at_end(why: &'static str) -> OutsideWrite {
        OutsideWrite { early_refusal: Some(why), ..OutsideWrite::default() }
    }
}
