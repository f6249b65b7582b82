//! PHP: the command line's output has no buffer.

use weir_model::{Runtime, RuntimeFix, RuntimeFixes, RuntimeId, RuntimeLimits, SourceLanguage};

use crate::runtime_entry::{always_possible, never_linked};
use crate::runtime_options::IgnoresEnvironment;
use crate::{BufferAccess, ProgramDetection, RuntimeEntry, UnreachedBuffers, UnreadableEntry};

const NOT_NEEDED: RuntimeFix = RuntimeFix::NotNeeded(
    "PHP writes at once on the command line, unless the program calls ob_start() or sets output_buffering",
);

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    facts: Runtime {
        id: RuntimeId::new("php"),
        name: "PHP",
        language: SourceLanguage::Php,
        fixes: RuntimeFixes {
            unbuffered: NOT_NEEDED,
            line_buffered: NOT_NEEDED,
            fully_buffered: RuntimeFix::Impossible(
                "PHP has no buffer on the command line: use --coalesce, or ob_start() in the program",
            ),
            max_delay: NOT_NEEDED,
            rescue: NOT_NEEDED,
            fork: NOT_NEEDED,
            order: NOT_NEEDED,
            other_streams: RuntimeFix::Impossible(
                "PHP makes its calls itself: its streams cannot get another buffer from outside",
            ),
        },
        limits: RuntimeLimits::NONE,
    },
    order: 80,
    detection: ProgramDetection::ProgramNames { names: &["php"], marks: &["zend_", "PHPRC"] },
    buffers: BufferAccess::Unreadable(UnreadableEntry {
        buffers: "PHP's own buffers",
        files: &["php", "libphp"],
        is_linked_into: never_linked,
    }),
    unreached: &[UnreachedBuffers {
        name: "the buffer of ob_start() or output_buffering, if the program uses one",
        options: &["--rescue"],
        possible: always_possible,
        is_drained: false,
    }],
    hook: None,
    ignores_environment: IgnoresEnvironment::Never,
};
