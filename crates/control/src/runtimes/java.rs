//! Java: System.out writes at once; a BufferedWriter of the program's own is out of reach.

use super::{RuntimeFacts, RuntimeFix, named, never};

const AT_ONCE: RuntimeFix =
    RuntimeFix::Already("System.out writes at once; a BufferedWriter of the program's own is out of reach");

pub(super) static RUNTIME: RuntimeFacts = RuntimeFacts {
    name: "Java",
    is: |program| named(program, &["java"]),
    none: AT_ONCE,
    line: AT_ONCE,
    full: RuntimeFix::Not("System.out has no buffer"),
    delay: AT_ONCE,
    rescue: AT_ONCE,
    fork: AT_ONCE,
    order: AT_ONCE,
    others: RuntimeFix::Not(
        "Java makes its calls itself: its own streams cannot be given another buffer from outside",
    ),
    hook: None,
    deaf: never,
};
