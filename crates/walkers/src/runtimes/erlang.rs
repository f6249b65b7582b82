//! Erlang: its ports have queues, and a file opened with `delayed_write` has a buffer. No walker reads them.

use weir_model::{RuntimeFix, RuntimeFixes};

use crate::runtime_entry::{always_possible, never_linked};
use crate::{ProgramDetection, RuntimeEntry, UnreachedBuffers, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "erlang",
    "Erlang",
    96,
    ProgramDetection::ProgramNames {
        names: &["erl", "escript", "beam.smp", "elixir", "iex", "mix"],
        marks: &["enif_", "erlexec", "ESCRIPT_"],
    },
    RuntimeFixes {
        fully_buffered: RuntimeFix::Impossible("standard output has no buffer in Erlang"),
        other_streams: RuntimeFix::Impossible("its files cannot get another buffer from outside"),
        ..RuntimeFixes::all(RuntimeFix::NotNeeded("standard output is written at once"))
    },
    UnreadableEntry {
        buffers: "Erlang's own buffers",
        files: &["beam", "beam.smp"],
        is_linked_into: never_linked,
    },
)
.with_unreached(&[UnreachedBuffers {
    name: "a file opened with delayed_write",
    options: &["--max-delay", "--rescue", "--fix-fork"],
    possible: always_possible,
    is_drained: false,
}]);
