//! Requirements and comparisons that several exercises share.

use std::time::Duration;

use super::calls::FileCalls;
use super::check_directory::CheckDirectory;
use super::{Requirement, Test, wrong};

/// Time limit for an immediate effect; generous, because the machine may be busy.
pub(super) const AT_ONCE: Duration = Duration::from_secs(2);

/// Bytes per call that count as blocks: that of the smallest usual buffer.
const BYTES_PER_CALL: u64 = 512;
/// Calls allowed in addition: the read at the end of the file, a probe of the file's type.
const EXTRA_CALLS: u64 = 4;

/// Requires a usage message if the program gets no arguments.
pub(super) const USAGE: Requirement = Requirement {
    id: "usage",
    what: "without arguments it prints its usage, with a status other than 0",
    see: "exit(3): status 2 is usual",
    test: |dir| dir.run(&[]).done()?.failed("without arguments").map(drop),
};

/// Requires that inputs of about the size of a block are copied exactly.
pub(super) const fn block_borders(test: fn(&CheckDirectory) -> Test) -> Requirement {
    Requirement {
        id: "block-borders",
        what: "with sizes of a block, one less and one more, no byte is lost or added",
        see: "read(2), fread(3): the last block is shorter; its length is the return value of the call",
        test,
    }
}

/// Requires an error on a full disk. `see` explains which calls of the exercise return it.
pub(super) const fn full_disk(see: &'static str, test: fn(&CheckDirectory) -> Test) -> Requirement {
    let what = "on a full disk (/dev/full) it reports the error, with a status other than 0";
    Requirement { id: "full-disk", what, see, test }
}

/// Requires that a short write is continued or reported.
pub(super) const fn short_write(test: fn(&CheckDirectory) -> Test) -> Requirement {
    Requirement {
        id: "short-write",
        what: "after a short write it writes the rest or fails",
        see: "write(2): a short write is not an error yet; weir lab full-disk",
        test,
    }
}

/// Fails unless the bytes are equal. `of` names the case.
pub(super) fn same(of: &str, wanted: &[u8], got: &[u8]) -> Test {
    if wanted == got {
        return Ok(());
    }
    let at = wanted.iter().zip(got).take_while(|(a, b)| a == b).count();
    let here = |bytes: &[u8]| match bytes.get(at..) {
        Some([]) | None => "the end".to_string(),
        Some(rest) => format!("{:?}", String::from_utf8_lossy(&rest[..rest.len().min(12)])),
    };
    wrong(format!(
        "{of}: {} bytes instead of {}; the first difference is at byte {at}: {} instead of {}",
        got.len(),
        wanted.len(),
        here(got),
        here(wanted)
    ))
}

/// Fails if the calls moved too few bytes each to be blocks.
pub(super) fn few(name: &str, made: FileCalls, bytes: u64) -> Test {
    let limit = bytes / BYTES_PER_CALL + EXTRA_CALLS;
    match made.calls <= limit {
        true => Ok(()),
        false => wrong(format!(
            "{} calls on {name} for {bytes} bytes; blocks of 4096 need {}",
            made.calls,
            bytes.div_ceil(4096)
        )),
    }
}

/// Returns inputs that often show errors, each with its name.
pub(super) fn odd_inputs() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("text", lines(30)),
        ("no final newline", b"one\ntwo\nthree".to_vec()),
        ("NUL bytes", b"a\0b\nc\0\0a\n\0".to_vec()),
        ("bytes of 255", [&[0xff, b'a', 0xff, 0xff, b'\n'][..], &[0xfe, 0xff]].concat()),
        ("one line of 100,000 bytes", [&b"ab".repeat(50_000)[..], b"\n"].concat()),
    ]
}

/// Returns numbered lines; the last one has a newline.
pub(super) fn lines(count: usize) -> Vec<u8> {
    (1..=count).flat_map(|number| format!("line {number} of {count}\n").into_bytes()).collect()
}

/// Returns bytes of a pattern in which a displaced byte is visible.
pub(super) fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| b"abcdefghijklmnopqrstuvwxyz\n"[(at / 7 + at) % 27]).collect()
}

/// Sizes around those of the usual buffers.
pub(super) const BORDERS: [usize; 12] = [1, 511, 512, 513, 1023, 1024, 1025, 4095, 4096, 4097, 8192, 65_537];

/// Returns whether the text has this shape; `#` means a digit.
pub(super) fn shaped(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text
            .bytes()
            .zip(shape.bytes())
            .all(|(c, of)| if of == b'#' { c.is_ascii_digit() } else { c == of })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::CheckFailure;

    #[test]
    fn a_difference_is_reported_with_its_offset() {
        assert!(same("x", b"abc", b"abc").is_ok());
        let Err(CheckFailure::Solution(text)) = same("a file", b"abcd", b"abx") else {
            panic!("they differ")
        };
        assert_eq!(
            text,
            "a file: 3 bytes instead of 4; the first difference is at byte 2: \"x\" instead of \"cd\""
        );
    }

    #[test]
    fn blocks_need_few_calls_and_single_bytes_many() {
        assert!(few("in", FileCalls { calls: 17, bytes: 65_536, syncs: 0 }, 65_536).is_ok());
        assert!(few("in", FileCalls { calls: 65_537, bytes: 65_536, syncs: 0 }, 65_536).is_err());
    }

    #[test]
    fn a_shape_matches_digits_and_literals() {
        assert!(shaped("2025-07-22T10:30:00", "####-##-##T##:##:##"));
        assert!(!shaped("2025-7-22T10:30:00", "####-##-##T##:##:##") && !shaped("x025", "####"));
    }
}
