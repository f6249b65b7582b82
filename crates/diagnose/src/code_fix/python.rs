//! Python: text and binary file objects.

use super::{CodeFix, CodeText, StreamObject};

pub(super) fn code(fix: CodeFix, object: StreamObject) -> CodeText {
    let (code, note) = match fix {
        CodeFix::BufferOutput => buffer_output(object),
        CodeFix::BufferInput => buffer_input(object),
        CodeFix::Flush => match object {
            StreamObject::Stdin | StreamObject::Stdout => (
                "sys.stdout.flush()",
                " or print(…, flush=True) before the program waits or ends, or sys.stdout.reconfigure(line_buffering=True) at the start",
            ),
            StreamObject::Stderr => ("sys.stderr.flush()", " before the program waits or ends"),
            StreamObject::Socket => ("f.flush()", " before the program waits or ends"),
            StreamObject::File | StreamObject::Pipe => (
                "f.flush()",
                " before the program waits or ends, or open(path, 'w', buffering=1), which writes each line",
            ),
        },
        CodeFix::FlushBeforeFork => match object {
            StreamObject::Stdin | StreamObject::Stdout => {
                ("sys.stdout.flush()", " before os.fork(), os.exec…(), os.system() and subprocess")
            }
            StreamObject::Stderr => ("sys.stderr.flush()", " before os.fork(), os.exec…() and subprocess"),
            _ => ("f.flush()", " or f.close() before os.fork(), os.exec…(), os.system() and subprocess"),
        },
        CodeFix::CheckErrors => match object {
            StreamObject::File => {
                ("with open(path, 'w') as f: f.write(data)", ", outside of any except that ignores OSError")
            }
            StreamObject::Pipe | StreamObject::Socket => {
                ("f.close()", " at the end, outside of any except that ignores OSError")
            }
            _ => ("sys.stdout.flush()", " at the end, outside of any except that ignores OSError"),
        },
        CodeFix::SyncRename => (
            "f.flush(); os.fsync(f.fileno()); f.close(); os.replace(temporary, path); \
                d = os.open(directory, os.O_RDONLY); os.fsync(d); os.close(d)",
            "",
        ),
        CodeFix::WholeLines if object == StreamObject::Stdout => (
            "sys.stdout.reconfigure(line_buffering=True, write_through=False)",
            " at the start, and no flush within a line",
        ),
        CodeFix::WholeLines => ("f = open(path, 'a', buffering=1)", ", and no flush within a line"),
        CodeFix::ReadUnbuffered => (
            "f = open(0, 'rb', buffering=0, closefd=False)",
            " and f.readline(), which then reads single bytes",
        ),
    };
    CodeText::new(code, note)
}

fn buffer_output(object: StreamObject) -> (&'static str, &'static str) {
    match object {
        StreamObject::Stdin | StreamObject::Stdout => (
            "sys.stdout = open(1, 'w', buffering=65536, closefd=False)",
            " at the start; print(…) without flush=True, no sys.stdout.flush() and no os.write() in the loop",
        ),
        StreamObject::Stderr => (
            "sys.stderr = open(2, 'w', buffering=65536, closefd=False)",
            " at the start, and sys.stderr.flush() where a message must appear at once",
        ),
        StreamObject::File => (
            "f = open(path, 'wb', buffering=65536)",
            " ('w' for text) and f.write(); no buffering=0 or 1, no flush=True, no f.flush() and no os.write() in the \
                loop; with logging, MemoryHandler(1000, target=handler) of logging.handlers, because other handlers flush each record",
        ),
        StreamObject::Pipe => {
            ("f = os.fdopen(fd, 'wb', buffering=65536)", " and f.write(); no os.write() in the loop")
        }
        StreamObject::Socket => (
            "f = sock.makefile('wb', buffering=65536)",
            " and f.write() instead of sock.send(), and f.flush() where the peer must get it",
        ),
    }
}

fn buffer_input(object: StreamObject) -> (&'static str, &'static str) {
    match object {
        StreamObject::File => (
            "f = open(path, 'rb', buffering=65536)",
            " and f.read() or a loop over f; no buffering=0 and no os.read() or os.pread() of a few bytes",
        ),
        StreamObject::Pipe => {
            ("f = os.fdopen(fd, 'rb', buffering=65536)", " and f.read(); no os.read() of a few bytes")
        }
        StreamObject::Socket => (
            "f = sock.makefile('rb', buffering=65536)",
            " and f.read() instead of sock.recv() of a few bytes",
        ),
        _ => (
            "f = open(0, 'rb', buffering=65536, closefd=False)",
            " and f.read() or a loop over f; no os.read() of a few bytes",
        ),
    }
}
