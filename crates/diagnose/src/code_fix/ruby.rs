//! Ruby: IO objects.

use super::{CodeFix, CodeText, StreamObject};

pub(super) fn code(fix: CodeFix, object: StreamObject) -> CodeText {
    let standard = matches!(object, StreamObject::Stdin | StreamObject::Stdout);
    let (code, note) = match fix {
        CodeFix::BufferOutput => match object {
            StreamObject::Stdin | StreamObject::Stdout => {
                ("$stdout.sync = false", " and puts or write; no $stdout.flush and no syswrite in the loop")
            }
            StreamObject::Stderr => {
                ("$stderr.sync = false", ", and $stderr.flush where a message must appear at once")
            }
            StreamObject::File | StreamObject::Pipe => {
                ("f.sync = false", " and f.write; no f.flush and no syswrite in the loop")
            }
            StreamObject::Socket => {
                ("f.sync = false", ", because sockets start with true, and f.write; no f.send in the loop")
            }
        },
        CodeFix::BufferInput => match object {
            StreamObject::Stdin => {
                ("line = $stdin.gets", " or $stdin.read(65536); no sysread or readpartial of a few bytes")
            }
            _ => ("line = f.gets", " or f.read(65536); no sysread or readpartial of a few bytes"),
        },
        CodeFix::Flush if standard => {
            ("$stdout.flush", " before the program waits or ends, or $stdout.sync = true once at the start")
        }
        CodeFix::Flush => ("f.flush", " before the program waits or ends, or f.sync = true once after open"),
        CodeFix::FlushBeforeFork if standard => ("$stdout.flush", " before fork, exec and system"),
        CodeFix::FlushBeforeFork => ("f.flush", " before fork, exec and system"),
        CodeFix::CheckErrors if standard => {
            ("$stdout.flush", " at the end, outside of any rescue that ignores SystemCallError")
        }
        CodeFix::CheckErrors => {
            ("f.close", " at the end, outside of any rescue that ignores SystemCallError")
        }
        CodeFix::SyncRename => {
            ("f.fsync; f.close; File.rename(temporary, path); File.open(directory) { |d| d.fsync }", "")
        }
        CodeFix::WholeLines if object == StreamObject::Stdout => {
            ("$stdout.sync = true", " at the start, and each line in one write")
        }
        CodeFix::WholeLines => ("f.sync = true", " after open with 'a', and each line in one write"),
        CodeFix::ReadUnbuffered => {
            ("character = $stdin.sysread(1)", " for each character up to the end of the line")
        }
    };
    CodeText::new(code, note)
}
