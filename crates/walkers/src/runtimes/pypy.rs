//! PyPy: takes CPython's hook and variables; no walker reads its buffers.

use weir_model::{Runtime, RuntimeFix, RuntimeFixes, RuntimeId, RuntimeLimits, SourceLanguage};

use crate::runtime_entry::{OPENED_FILES, never_linked};
use crate::runtimes::cpython::{HOOK, LINE_BUFFERED, OPTIONS, UNBUFFERED};
use crate::{BufferAccess, IgnoresEnvironment, ProgramDetection, RuntimeEntry, UnreadableEntry};

const BY_LINES: RuntimeFix = RuntimeFix::HookSubstitute(
    "a sitecustomize makes sys.stdout line-buffered: PyPy's buffers cannot be read",
);

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    facts: Runtime {
        id: RuntimeId::new("pypy"),
        name: "PyPy",
        language: SourceLanguage::Python,
        fixes: RuntimeFixes {
            unbuffered: UNBUFFERED,
            line_buffered: LINE_BUFFERED,
            fully_buffered: RuntimeFix::Environment {
                variables: &[("PYTHONUNBUFFERED", "")],
                effect: "PyPy's own full buffer",
            },
            max_delay: BY_LINES,
            rescue: BY_LINES,
            fork: BY_LINES,
            order: UNBUFFERED,
            other_streams: RuntimeFix::Impossible("PyPy buffers what it reads and opens itself"),
        },
        limits: RuntimeLimits::NONE,
    },
    order: 20,
    detection: ProgramDetection::ProgramNames { names: &["pypy"], marks: &["pypy"] },
    buffers: BufferAccess::Unreadable(UnreadableEntry {
        buffers: "PyPy's own buffers",
        files: &["pypy", "libpypy"],
        is_linked_into: never_linked,
    }),
    unreached: &OPENED_FILES,
    hook: Some(&HOOK),
    ignores_environment: IgnoresEnvironment::Options(&OPTIONS),
};
