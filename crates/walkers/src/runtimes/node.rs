//! Node.js: process.stdout is written at once, and queues bytes that a full pipe does not take; no walker reads the queues of streams.

use weir_model::{Runtime, RuntimeFix, RuntimeFixes, RuntimeId, RuntimeLimits, SourceLanguage};

use crate::runtime_entry::{always_possible, never_linked};
use crate::runtime_options::IgnoresEnvironment;
use crate::{BufferAccess, ProgramDetection, RuntimeEntry, UnreachedBuffers, UnreadableEntry};

const NOT_NEEDED: RuntimeFix =
    RuntimeFix::NotNeeded("process.stdout writes at once to files, and to a pipe while it has room");

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry {
    facts: Runtime {
        id: RuntimeId::new("node"),
        name: "Node",
        language: SourceLanguage::Node,
        fixes: RuntimeFixes {
            unbuffered: NOT_NEEDED,
            line_buffered: NOT_NEEDED,
            fully_buffered: RuntimeFix::Impossible("process.stdout has no buffer that collects writes"),
            max_delay: NOT_NEEDED,
            rescue: NOT_NEEDED,
            fork: NOT_NEEDED,
            order: NOT_NEEDED,
            other_streams: RuntimeFix::Impossible(
                "Node makes its calls itself: its streams cannot get another buffer from outside",
            ),
        },
        limits: RuntimeLimits {
            coalesce: Some("Node has several threads: one could reveal what another has not written yet"),
            ..RuntimeLimits::NONE
        },
    },
    order: 60,
    detection: ProgramDetection::ProgramNames {
        names: &["node", "nodejs"],
        marks: &["napi_", "libnode", "NODE_OPTIONS"],
    },
    buffers: BufferAccess::Unreadable(UnreadableEntry {
        buffers: "Node's own buffers",
        files: &["node", "nodejs", "libnode.so"],
        is_linked_into: never_linked,
    }),
    unreached: &[UnreachedBuffers {
        name: "the queue of an fs.WriteStream, if the program has one, and of process.stdout while its pipe is full",
        options: &["--rescue"],
        possible: always_possible,
        is_drained: false,
    }],
    hook: None,
    ignores_environment: IgnoresEnvironment::Never,
};
