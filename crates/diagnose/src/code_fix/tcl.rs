//! Code advice for Tcl: channels.

use super::{CodeFix, CodeText, StreamObject};

pub(super) fn code(fix: CodeFix, object: StreamObject) -> CodeText {
    let standard = matches!(object, StreamObject::Stdin | StreamObject::Stdout);
    let (code, note) = match fix {
        CodeFix::BufferOutput if standard => {
            ("fconfigure stdout -buffering full -buffersize 65536", " at the start; no flush in the loop")
        }
        CodeFix::BufferOutput if object == StreamObject::Stderr => (
            "fconfigure stderr -buffering full -buffersize 65536",
            ", and flush stderr where a message must appear at once",
        ),
        CodeFix::BufferOutput => {
            ("fconfigure $f -buffering full -buffersize 65536", " after open; no flush in the loop")
        }
        CodeFix::BufferInput if object == StreamObject::Stdin => {
            ("fconfigure stdin -buffering full -buffersize 65536", ", then gets or read")
        }
        CodeFix::BufferInput => ("fconfigure $f -buffering full -buffersize 65536", ", then gets or read"),
        CodeFix::Flush if standard => (
            "flush stdout",
            " before the program waits or ends, or fconfigure stdout -buffering line once at the start",
        ),
        CodeFix::Flush => (
            "flush $f",
            " before the program waits or ends, or fconfigure $f -buffering line once after open",
        ),
        CodeFix::FlushBeforeFork if standard => ("flush stdout", " before exec and open of a command"),
        CodeFix::FlushBeforeFork => ("flush $f", " before exec and open of a command"),
        CodeFix::CheckErrors if standard => {
            ("flush stdout", " at the end, outside of any catch that ignores the error")
        }
        CodeFix::CheckErrors => ("close $f", " at the end, outside of any catch that ignores the error"),
        CodeFix::SyncRename => {
            ("close $f; exec sync $temporary; file rename -force $temporary $path; exec sync $directory", "")
        }
        CodeFix::WholeLines if object == StreamObject::Stdout => {
            ("fconfigure stdout -buffering line", " at the start, and no flush within a line")
        }
        CodeFix::WholeLines => {
            ("fconfigure $f -buffering line", " after open with a, and no flush within a line")
        }
        CodeFix::ReadUnbuffered => {
            ("fconfigure stdin -buffering none -buffersize 1", " before the first gets")
        }
    };
    CodeText::new(code, note)
}
