//! Go: os.Stdout has no buffer, a bufio.Writer is the program's own; it makes its system calls itself.

use super::{RuntimeFacts, RuntimeFix, never};
use crate::plan::executable::SourceLanguage;

const AT_ONCE: RuntimeFix = RuntimeFix::Already(
    "os.Stdout writes at once; what a bufio.Writer of the program's own holds is out of reach",
);
const CANNOT: RuntimeFix = RuntimeFix::Not(
    "Go makes its system calls itself and has no streams to change: only a bufio.Writer in the program helps",
);

pub(super) static RUNTIME: RuntimeFacts = RuntimeFacts {
    name: "Go",
    is: |program| program.elf.as_ref().is_some_and(|elf| elf.language == Some(SourceLanguage::Go)),
    none: AT_ONCE,
    line: AT_ONCE,
    full: CANNOT,
    delay: AT_ONCE,
    rescue: AT_ONCE,
    fork: AT_ONCE,
    order: AT_ONCE,
    others: CANNOT,
    hook: None,
    deaf: never,
};
