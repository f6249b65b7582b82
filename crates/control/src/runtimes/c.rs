//! Programs whose streams are the C library's: most of them.

use super::{RuntimeFacts, RuntimeFix, never};

/// The others start from it.
pub(super) const STDIO: RuntimeFacts = RuntimeFacts {
    name: "C",
    is: |_| true,
    none: RuntimeFix::Library,
    line: RuntimeFix::Library,
    full: RuntimeFix::Library,
    delay: RuntimeFix::Outside,
    rescue: RuntimeFix::Outside,
    fork: RuntimeFix::Outside,
    order: RuntimeFix::Library,
    others: RuntimeFix::Library,
    hook: None,
    deaf: never,
};

pub(super) static RUNTIME: RuntimeFacts = STDIO;
