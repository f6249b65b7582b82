//! A language without texts of its own.

use super::{CodeFix, CodeText, StreamObject};

pub(super) fn code(fix: CodeFix, object: StreamObject) -> CodeText {
    let _ = object;
    let note = match fix {
        CodeFix::BufferOutput => {
            "collect the output in memory and write blocks of 64 KiB; no flush in the loop"
        }
        CodeFix::BufferInput => "read blocks of 64 KiB and take the few bytes from them",
        CodeFix::Flush => "flush the stream before the program waits or ends",
        CodeFix::FlushBeforeFork => "flush every stream before a child is started",
        CodeFix::CheckErrors => {
            "check the results of the write, the flush and the close, and exit with a status other than 0"
        }
        CodeFix::SyncRename => "fsync the file, rename it, fsync its directory",
        CodeFix::ReadUnbuffered => "read no more than is used: single bytes up to the end of the line",
        CodeFix::WholeLines => "write each line in one write(2), with O_APPEND",
    };
    CodeText::new("", note)
}
