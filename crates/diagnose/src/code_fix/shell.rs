//! Shells: they write after each command and have no buffer of their own.

use super::{CodeFix, CodeText, StreamObject};

pub(super) fn code(fix: CodeFix, object: StreamObject) -> CodeText {
    let _ = object;
    let (code, note) = match fix {
        CodeFix::BufferOutput => (
            "awk '{ print $1 }' \"$input\" > \"$output\"",
            ", that is one process for the whole loop: the shell writes after each echo or printf",
        ),
        CodeFix::BufferInput => (
            "awk '{ print $1 }' \"$input\"",
            ", that is one process for the whole loop: the shell's read takes single bytes, because commands share the input",
        ),
        CodeFix::Flush => ("", "the shell itself has no output buffer: see the command that it runs"),
        CodeFix::FlushBeforeFork => {
            ("", "the shell itself has no output buffer: see the command that it runs")
        }
        CodeFix::CheckErrors => ("echo \"$data\" || exit 1", ", or set -e at the start"),
        CodeFix::SyncRename => (
            "sync \"$temporary\" && mv \"$temporary\" \"$path\" && sync \"$directory\"",
            ", if the command that wrote it has succeeded",
        ),
        CodeFix::WholeLines => {
            ("printf '%s\\n' \"$line\"", " for each line: the shell writes after each command")
        }
        CodeFix::ReadUnbuffered => ("IFS= read -r line", ", which reads no more than the line"),
    };
    CodeText::new(code, note)
}
