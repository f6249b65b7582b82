//! Node: its streams have no output buffer that collects small writes.

use super::{CodeFix, CodeText, StreamObject};

// A fix of the output is never proposed for standard input, which shares the arms of standard output.
pub(super) fn code(fix: CodeFix, object: StreamObject) -> CodeText {
    let (code, note) = match fix {
        CodeFix::BufferOutput => buffer_output(object),
        CodeFix::BufferInput => buffer_input(object),
        CodeFix::FlushBeforeFork => match object {
            StreamObject::Stdin | StreamObject::Stdout => {
                ("process.stdout.write(data, () => start())", ": the child starts only after the write")
            }
            StreamObject::Stderr => {
                ("process.stderr.write(data, () => start())", ": the child starts only after the write")
            }
            _ => ("out.write(data, () => start())", ": the child starts only after the write"),
        },
        CodeFix::Flush => match object {
            StreamObject::Stdin | StreamObject::Stdout => (
                "process.stdout.write(data, () => process.exit(0))",
                ": the program ends only after the write",
            ),
            StreamObject::Stderr => (
                "process.stderr.write(data, () => process.exit(0))",
                ": the program ends only after the write",
            ),
            _ => ("out.end(() => process.exit(0))", ": the program ends only after the last write"),
        },
        CodeFix::CheckErrors => match object {
            StreamObject::Stdin | StreamObject::Stdout => {
                ("process.stdout.on('error', () => process.exit(1))", "")
            }
            StreamObject::Stderr => ("process.stderr.on('error', () => process.exit(1))", ""),
            _ => ("out.on('error', error => { console.error(error); process.exitCode = 1 })", ""),
        },
        CodeFix::SyncRename => (
            "fs.fsyncSync(fd); fs.closeSync(fd); fs.renameSync(temporary, path); \
                const d = fs.openSync(directory); fs.fsyncSync(d); fs.closeSync(d)",
            "",
        ),
        CodeFix::WholeLines if object == StreamObject::Stdout => {
            ("fs.writeSync(1, line)", " with each line whole")
        }
        CodeFix::WholeLines => {
            ("fs.writeSync(fd, line)", " with each line whole, after fs.openSync(path, 'a')")
        }
        CodeFix::ReadUnbuffered => (
            "const byte = Buffer.alloc(1); const count = fs.readSync(0, byte)",
            " for each byte up to the end of the line",
        ),
    };
    CodeText::new(code, note)
}

fn buffer_output(object: StreamObject) -> (&'static str, &'static str) {
    let note = " once for every 64 KiB, with small pieces collected in an array";
    match object {
        StreamObject::Stdin | StreamObject::Stdout => ("process.stdout.write(pieces.join(''))", note),
        StreamObject::Stderr => ("process.stderr.write(pieces.join(''))", note),
        StreamObject::File | StreamObject::Pipe => ("fs.writeSync(fd, pieces.join(''))", note),
        StreamObject::Socket => ("socket.write(pieces.join(''))", note),
    }
}

fn buffer_input(object: StreamObject) -> (&'static str, &'static str) {
    match object {
        StreamObject::Stdin => {
            ("process.stdin.on('data', block => use(block))", "; no fs.readSync of a few bytes")
        }
        StreamObject::Socket => ("socket.on('data', block => use(block))", "; no socket.read of a few bytes"),
        StreamObject::Pipe => (
            "const block = Buffer.alloc(65536); const count = fs.readSync(fd, block)",
            "; no fs.readSync of a few bytes",
        ),
        _ => (
            "fs.createReadStream(path, { highWaterMark: 65536 }).on('data', block => use(block))",
            "; no fs.readSync of a few bytes",
        ),
    }
}
