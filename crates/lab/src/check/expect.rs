//! What several exercises ask in the same words.

use std::time::Duration;

use super::calls::FileCalls;
use super::check_directory::CheckDirectory;
use super::{Requirement, Test, wrong};

/// Long enough for what should be there at once, also on a busy machine.
pub(super) const AT_ONCE: Duration = Duration::from_secs(2);

/// A call for so many bytes is not too many of them.
const BYTES_A_CALL: u64 = 512;
/// Calls that any program may make beside: the one that says the end, a probe of the kind of file.
const CALLS_BESIDE: u64 = 4;

/// A program that takes arguments is given none.
pub(super) const USAGE: Requirement = Requirement {
    id: "usage",
    what: "without arguments it says how it is used, with a status that is not 0",
    see: "exit(3): status 2 is usual",
    test: |dir| dir.run(&[]).done()?.failed("without arguments").map(drop),
};

/// Inputs of about a block.
pub(super) const fn block_borders(test: fn(&CheckDirectory) -> Test) -> Requirement {
    Requirement {
        id: "block-borders",
        what: "sizes of a block, one less and one more lose and add nothing",
        see: "read(2), fread(3): the last block is shorter, its length is what the call returned",
        test,
    }
}

/// Nothing can be written. `see`: what tells it of the calls that the exercise is about.
pub(super) const fn full_disk(see: &'static str, test: fn(&CheckDirectory) -> Test) -> Requirement {
    let what = "on a full disk (/dev/full) it says so, with a status that is not 0";
    Requirement { id: "full-disk", what, see, test }
}

/// Not all can be written.
pub(super) const fn short_write(test: fn(&CheckDirectory) -> Test) -> Requirement {
    Requirement {
        id: "short-write",
        what: "when only a part of a write fits, it goes on with the rest or fails",
        see: "write(2): less than was asked for is no error yet; weir lab full-disk",
        test,
    }
}

/// Are these the same bytes? `of` names the case.
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
        "{of}: {} bytes came where {} are right; they differ at byte {at}: {} in place of {}",
        got.len(),
        wanted.len(),
        here(got),
        here(wanted)
    ))
}

/// Were the bytes moved in blocks?
pub(super) fn few(name: &str, flow: FileCalls, bytes: u64) -> Test {
    let most = bytes / BYTES_A_CALL + CALLS_BESIDE;
    match flow.calls <= most {
        true => Ok(()),
        false => wrong(format!(
            "{} calls on {name} for {bytes} bytes; blocks of 4096 take {}",
            flow.calls,
            bytes.div_ceil(4096)
        )),
    }
}

/// Inputs that programs stumble over, each with its name.
pub(super) fn odd_inputs() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("text", lines(30)),
        ("no final newline", b"one\ntwo\nthree".to_vec()),
        ("NUL bytes", b"a\0b\nc\0\0a\n\0".to_vec()),
        ("bytes of 255", [&[0xff, b'a', 0xff, 0xff, b'\n'][..], &[0xfe, 0xff]].concat()),
        ("one line of 100,000 bytes", [&b"ab".repeat(50_000)[..], b"\n"].concat()),
    ]
}

/// Numbered lines, the last with its newline.
pub(super) fn lines(count: usize) -> Vec<u8> {
    (1..=count).flat_map(|number| format!("line {number} of {count}\n").into_bytes()).collect()
}

/// So many bytes that tell where they stand.
pub(super) fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| b"abcdefghijklmnopqrstuvwxyz\n"[(at / 7 + at) % 27]).collect()
}

/// Sizes around those of the usual buffers.
pub(super) const BORDERS: [usize; 12] = [1, 511, 512, 513, 1023, 1024, 1025, 4095, 4096, 4097, 8192, 65_537];

/// Is the text of this shape? `#` stands for a digit.
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
    fn a_difference_is_told_with_its_place() {
        assert!(same("x", b"abc", b"abc").is_ok());
        let Err(CheckFailure::Solution(text)) = same("a file", b"abcd", b"abx") else {
            panic!("they differ")
        };
        assert_eq!(
            text,
            "a file: 3 bytes came where 4 are right; they differ at byte 2: \"x\" in place of \"cd\""
        );
    }

    #[test]
    fn blocks_are_few_calls_and_bytes_are_not() {
        assert!(few("in", FileCalls { calls: 17, bytes: 65_536, syncs: 0 }, 65_536).is_ok());
        assert!(few("in", FileCalls { calls: 65_537, bytes: 65_536, syncs: 0 }, 65_536).is_err());
    }

    #[test]
    fn a_shape_is_digits_and_itself() {
        assert!(shaped("2025-07-22T10:30:00", "####-##-##T##:##:##"));
        assert!(!shaped("2025-7-22T10:30:00", "####-##-##T##:##:##") && !shaped("x025", "####"));
    }
}
