//! C++: iostreams. A socket or a pipe has no iostream, so C's functions serve them.

use super::{CodeFix, CodeText, StreamObject};

pub(super) fn code(fix: CodeFix, object: StreamObject) -> CodeText {
    if matches!(object, StreamObject::Pipe | StreamObject::Socket) {
        return super::c::code(fix, object);
    }
    let file = object == StreamObject::File;
    let (code, note) = match fix {
        CodeFix::BufferOutput => buffer_output(object),
        CodeFix::BufferInput => buffer_input(object),
        CodeFix::Flush if file => (
            "out.flush();",
            " before the program waits or ends, or out << std::unitbuf once after it is opened",
        ),
        CodeFix::Flush if object == StreamObject::Stderr => {
            ("std::clog << std::flush;", " before the program waits or ends")
        }
        CodeFix::Flush => (
            "std::cout << std::flush;",
            " before the program waits or ends, or std::cout << std::unitbuf once at the start",
        ),
        CodeFix::FlushBeforeFork if file => ("out.flush();", " before fork, exec and system"),
        CodeFix::FlushBeforeFork => (
            "std::cout << std::flush; std::fflush(nullptr);",
            " before fork, exec and system; _exit in a child that does not exec",
        ),
        CodeFix::CheckErrors if file => {
            ("out.close(); if (!out) return 1;", "; check the results of write(2), fsync(2) and close(2) too")
        }
        CodeFix::CheckErrors => (
            "if (!std::cout.flush()) return 1;",
            " at the end; check the results of write(2) and close(2) too",
        ),
        CodeFix::SyncRename => (
            "out.close(); int fd = open(temporary, O_RDONLY); if (out && fsync(fd) == 0) rename(temporary, path); close(fd); \
                int d = open(directory, O_RDONLY | O_DIRECTORY); fsync(d); close(d);",
            "",
        ),
        CodeFix::WholeLines if object == StreamObject::Stdout => {
            ("std::cout << std::unitbuf;", " at the start, and each line in one <<")
        }
        CodeFix::WholeLines => {
            ("out << std::unitbuf;", " after it is opened with std::ios::app, and each line in one <<")
        }
        CodeFix::ReadUnbuffered => (
            "std::setvbuf(stdin, nullptr, _IONBF, 0);",
            " before the first input, without sync_with_stdio(false)",
        ),
    };
    CodeText::new(code, note)
}

fn buffer_output(object: StreamObject) -> (&'static str, &'static str) {
    match object {
        StreamObject::File => (
            "std::ofstream out(path);",
            " and out << '\\n'; no std::endl, std::flush or write(2) in the loop",
        ),
        StreamObject::Stderr => (
            "std::ios::sync_with_stdio(false);",
            " at the start, and std::clog instead of std::cerr; no std::endl in the loop",
        ),
        _ => (
            "std::ios::sync_with_stdio(false);",
            " at the start, and std::cout << '\\n'; no std::endl, std::flush or write(2) in the loop",
        ),
    }
}

fn buffer_input(object: StreamObject) -> (&'static str, &'static str) {
    match object {
        StreamObject::File => {
            ("std::ifstream in(path);", " and in.get, in.read or std::getline; no read(2) of a few bytes")
        }
        _ => (
            "std::ios::sync_with_stdio(false); std::cin.tie(nullptr);",
            " at the start, and std::cin.get or std::getline; no read(2) of a few bytes",
        ),
    }
}
