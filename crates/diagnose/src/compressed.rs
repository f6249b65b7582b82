//! Formats of compressed data. A program that writes one has bytes in its compressor that no buffer shows.

/// The first bytes of a format, and its name.
const FORMATS: [(&[u8], &str); 4] =
    [(b"\x1f\x8b\x08", "gzip"), (b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2")];

/// Returns the name of the format that begins with these bytes.
pub(crate) fn format_of(head: &[u8]) -> Option<&'static str> {
    FORMATS.iter().find(|(first, _)| head.starts_with(first)).map(|(_, name)| *name)
}
