//! Rust: standard output goes by lines, a BufWriter is the program's own.

use super::{RuntimeFacts, RuntimeFix, never};
use crate::plan::executable::SourceLanguage;

const BY_LINES: RuntimeFix =
    RuntimeFix::Already("Rust's stdout writes each line; a BufWriter of the program's own is out of reach");
const OWN: &str = "what a BufWriter of the program's own holds, and stdout's when the program has no symbols";

pub(super) static RUNTIME: RuntimeFacts = RuntimeFacts {
    name: "Rust",
    is: |program| program.elf.as_ref().is_some_and(|elf| elf.language == Some(SourceLanguage::Rust)),
    none: RuntimeFix::OutsidePart(OWN),
    line: BY_LINES,
    full: RuntimeFix::Not("Rust's stdout writes each line whatever it is: --coalesce gathers its calls"),
    delay: RuntimeFix::OutsidePart(OWN),
    rescue: RuntimeFix::OutsidePart(OWN),
    fork: RuntimeFix::OutsidePart(OWN),
    order: RuntimeFix::Not("Rust's stdout has a buffer of its own, which nothing from outside can take away"),
    others: RuntimeFix::Not("Rust has buffers of its own for what it reads and opens"),
    hook: None,
    deaf: never,
};
