//! Java: System.out has no buffer; a BufferedWriter belongs to the program and no walker reads it.

use weir_model::{Runtime, RuntimeFix, RuntimeFixes, RuntimeId, RuntimeLimits, SourceLanguage};

use crate::runtime_entry::{always_possible, never_linked};
use crate::runtime_options::IgnoresEnvironment;
use crate::{BufferAccess, ProgramDetection, RuntimeEntry, UnreachedBuffers, UnreadableEntry};

const NOT_NEEDED: RuntimeFix = RuntimeFix::NotNeeded("System.out writes at once");

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    facts: Runtime {
        id: RuntimeId::new("java"),
        name: "Java",
        language: SourceLanguage::Java,
        fixes: RuntimeFixes {
            unbuffered: NOT_NEEDED,
            line_buffered: NOT_NEEDED,
            fully_buffered: RuntimeFix::Impossible("System.out has no buffer"),
            max_delay: NOT_NEEDED,
            rescue: NOT_NEEDED,
            fork: NOT_NEEDED,
            order: NOT_NEEDED,
            other_streams: RuntimeFix::Impossible(
                "Java makes its calls itself: its streams cannot get another buffer from outside",
            ),
        },
        limits: RuntimeLimits {
            coalesce: Some("Java has several threads: one could reveal what another has not written yet"),
            ..RuntimeLimits::NONE
        },
    },
    order: 70,
    detection: ProgramDetection::ProgramNames {
        names: &["java"],
        marks: &["libjli", "JLI_", "JNI_CreateJavaVM"],
    },
    buffers: BufferAccess::Unreadable(UnreadableEntry {
        buffers: "Java's own buffers",
        files: &["libjvm.so"],
        is_linked_into: never_linked,
    }),
    unreached: &[UnreachedBuffers {
        name: "a BufferedWriter or BufferedOutputStream",
        options: &["--stdout none", "--stdout line", "--max-delay", "--rescue", "--fix-order"],
        possible: always_possible,
        is_drained: false,
    }],
    hook: None,
    ignores_environment: IgnoresEnvironment::Never,
};
