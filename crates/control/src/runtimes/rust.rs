//! Rust: standard output goes by lines, a BufWriter is the program's own.

use super::{Remedy, Runtime, never};
use crate::plan::executable::Language;

const BY_LINES: Remedy =
    Remedy::Already("Rust's stdout writes each line; a BufWriter of the program's own is out of reach");
const OWN: &str = "what a BufWriter of the program's own holds, and stdout's when the program has no symbols";

pub(super) static RUNTIME: Runtime = Runtime {
    name: "Rust",
    is: |program| program.elf.as_ref().is_some_and(|elf| elf.language == Some(Language::Rust)),
    none: Remedy::OutsidePart(OWN),
    line: BY_LINES,
    full: Remedy::Not("Rust's stdout writes each line whatever it is: --coalesce gathers its calls"),
    delay: Remedy::OutsidePart(OWN),
    rescue: Remedy::OutsidePart(OWN),
    fork: Remedy::OutsidePart(OWN),
    order: Remedy::Not("Rust's stdout has a buffer of its own, which nothing from outside can take away"),
    others: Remedy::Not("Rust has buffers of its own for what it reads and opens"),
    hook: None,
    deaf: never,
};
