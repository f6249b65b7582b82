//! .NET and Mono: the console has no buffer; other streams have. No walker reads them.

use weir_model::{RuntimeFix, RuntimeFixes};

use crate::runtime_entry::{always_possible, never_linked};
use crate::{ProgramDetection, RuntimeEntry, UnreachedBuffers, UnreadableEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::unreadable(
    "dotnet",
    ".NET",
    94,
    ProgramDetection::ProgramNames {
        names: &["dotnet", "mono", "mono-sgen"],
        marks: &["hostfxr", "DOTNET_ROOT", "mono_", "MONO_PATH"],
    },
    RuntimeFixes {
        fully_buffered: RuntimeFix::Impossible("Console.Out has no buffer"),
        other_streams: RuntimeFix::Impossible("its streams cannot get another buffer from outside"),
        ..RuntimeFixes::all(RuntimeFix::NotNeeded("Console.Out writes at once"))
    },
    UnreadableEntry {
        buffers: ".NET's own buffers",
        files: &["libcoreclr.so", "mono", "mono-sgen", "libmonosgen-2.0.so"],
        is_linked_into: never_linked,
    },
)
.with_unreached(&[UnreachedBuffers {
    name: "a StreamWriter or BufferedStream",
    options: &["--stdout none", "--stdout line", "--max-delay", "--rescue", "--fix-order"],
    possible: always_possible,
    is_drained: false,
}]);
