//! PyPy: as CPython, but no walker knows its buffers.

use super::cpython::{HOOK, ignores_environment};
use super::{RuntimeFacts, RuntimeFix, named};

const UNBUFFERED: RuntimeFix =
    RuntimeFix::Variables(&[("PYTHONUNBUFFERED", "1")], "PYTHONUNBUFFERED=1: each write goes out at once");
const BY_LINES: RuntimeFix =
    RuntimeFix::HookStandsIn("a sitecustomize makes sys.stdout line-buffered: PyPy's buffers cannot be read");

pub(super) static RUNTIME: RuntimeFacts = RuntimeFacts {
    name: "PyPy",
    is: |program| named(program, &["pypy"]),
    none: UNBUFFERED,
    line: RuntimeFix::Hook("a sitecustomize that makes sys.stdout line-buffered"),
    full: RuntimeFix::Variables(&[("PYTHONUNBUFFERED", "")], "its own full buffer"),
    delay: BY_LINES,
    rescue: BY_LINES,
    fork: BY_LINES,
    order: UNBUFFERED,
    others: RuntimeFix::Not("PyPy has buffers of its own for what it reads and opens"),
    hook: Some(&HOOK),
    deaf: ignores_environment,
};
