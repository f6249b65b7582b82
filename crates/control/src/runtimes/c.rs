//! Programs whose streams are the C library's: most of them.

use super::{Remedy, Runtime, never};

/// The others start from it.
pub(super) const STDIO: Runtime = Runtime {
    name: "C",
    is: |_| true,
    none: Remedy::Library,
    line: Remedy::Library,
    full: Remedy::Library,
    delay: Remedy::Outside,
    rescue: Remedy::Outside,
    fork: Remedy::Outside,
    order: Remedy::Library,
    others: Remedy::Library,
    hook: None,
    deaf: never,
};

pub(super) static RUNTIME: Runtime = STDIO;
