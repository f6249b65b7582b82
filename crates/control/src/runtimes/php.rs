//! PHP: the command line's output is written at once.

use super::{RuntimeFacts, RuntimeFix, named, never};

const AT_ONCE: RuntimeFix =
    RuntimeFix::Already("PHP writes at once on the command line, unless output_buffering is set");

pub(super) static RUNTIME: RuntimeFacts = RuntimeFacts {
    name: "PHP",
    is: |program| named(program, &["php"]),
    none: AT_ONCE,
    line: AT_ONCE,
    full: RuntimeFix::Not(
        "PHP has no buffer on the command line: --coalesce gathers its calls, ob_start() its output",
    ),
    delay: AT_ONCE,
    rescue: AT_ONCE,
    fork: AT_ONCE,
    order: AT_ONCE,
    others: RuntimeFix::Not(
        "PHP makes its calls itself: its own streams cannot be given another buffer from outside",
    ),
    hook: None,
    deaf: never,
};
