//! Programs that write their data by write(2), though they have streams for messages: cat, dd, gzip. No mode of a stream changes
//! how they write.

use weir_model::{DIRECT_WRITERS, RuntimeFix, RuntimeFixes};

use crate::{ProgramDetection, RuntimeEntry};

const NO_STREAM: RuntimeFix = RuntimeFix::NoEffect(
    "it moves its data by read(2) and write(2), not through streams whose buffers weir could change",
);

const NO_PENDING: RuntimeFix = RuntimeFix::NotNeeded("it has no stream with pending data");

/// Texts of their usage messages, and names of variables that they read. A text that all coreutils have would confirm any of them.
const MARKS: [&str; 8] = [
    "Concatenate FILE(s) to standard output",
    "Copy a file, converting and formatting",
    "Print the prime factors of each",
    "non-option in GZIP environment variable",
    "Andrew Wood",
    "Copy standard input to each FILE",
    "XZ_OPT",
    "Repeatedly output a line",
];

pub(crate) static RUNTIME: RuntimeEntry = {
    let mut entry = RuntimeEntry::stdio(
        "direct-writer",
        "a program that writes directly",
        126,
        ProgramDetection::ProgramNames { names: &DIRECT_WRITERS, marks: &MARKS },
    );
    entry.facts.fixes = RuntimeFixes { fork: NO_PENDING, order: NO_PENDING, ..RuntimeFixes::all(NO_STREAM) };
    entry
};
