//! Awk: mawk, gawk and others.

use super::{CodeFix, CodeText, StreamObject};

pub(super) fn code(fix: CodeFix, object: StreamObject) -> CodeText {
    let standard = matches!(object, StreamObject::Stdin | StreamObject::Stdout);
    let (code, note) = match fix {
        CodeFix::BufferOutput => ("{ print }", " without fflush(), system(\"\") and -W interactive"),
        CodeFix::BufferInput => ("{ print }", ", that is whole lines, without -W interactive"),
        CodeFix::Flush if standard => ("{ print; fflush() }", " where a line must appear at once"),
        CodeFix::Flush => ("{ print > path; fflush(path) }", " where a line must appear at once"),
        CodeFix::FlushBeforeFork => ("{ print; fflush() }", " before system() and a pipe to a command"),
        CodeFix::CheckErrors if standard => ("END { if (close(\"/dev/stdout\")) exit 1 }", ""),
        CodeFix::CheckErrors => ("END { if (close(path)) exit 1 }", ""),
        CodeFix::SyncRename => (
            "END { if (close(temporary) != 0) exit 1; exit system(\"sync '\" temporary \"' && mv '\" temporary \"' '\" path \"' && \
                sync '\" directory \"'\") }",
            "",
        ),
        CodeFix::WholeLines if object == StreamObject::Stdout => {
            ("{ print; fflush() }", " so that each line is one write")
        }
        CodeFix::WholeLines => ("{ print >> path; fflush(path) }", " so that each line is one write"),
        CodeFix::ReadUnbuffered => ("", "let the shell's read -r take the line, because awk reads blocks"),
    };
    CodeText::new(code, note)
}
