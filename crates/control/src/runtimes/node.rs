//! Node: writes to standard output at once.

use super::{RuntimeFacts, RuntimeFix, named, never};

const AT_ONCE: RuntimeFix = RuntimeFix::Already(
    "process.stdout writes to files and pipes at once; what a program collects itself is not seen",
);

pub(super) static RUNTIME: RuntimeFacts = RuntimeFacts {
    name: "Node",
    is: |program| named(program, &["node", "nodejs"]),
    none: AT_ONCE,
    line: AT_ONCE,
    full: RuntimeFix::Not("process.stdout has no buffer"),
    delay: AT_ONCE,
    rescue: AT_ONCE,
    fork: AT_ONCE,
    order: AT_ONCE,
    others: RuntimeFix::Not(
        "Node makes its calls itself: its own streams cannot be given another buffer from outside",
    ),
    hook: None,
    deaf: never,
};
