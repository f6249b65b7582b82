//! Java: java.io and java.nio.

use super::{CodeFix, CodeText, StreamObject};

pub(super) fn code(fix: CodeFix, object: StreamObject) -> CodeText {
    let standard = matches!(object, StreamObject::Stdin | StreamObject::Stdout);
    let (code, note) = match fix {
        CodeFix::BufferOutput => buffer_output(object),
        CodeFix::BufferInput => match object {
            StreamObject::Stdin => (
                "InputStream in = new BufferedInputStream(new FileInputStream(FileDescriptor.in), 65536);",
                "",
            ),
            StreamObject::Socket => {
                ("InputStream in = new BufferedInputStream(socket.getInputStream(), 65536);", "")
            }
            _ => ("InputStream in = new BufferedInputStream(new FileInputStream(path), 65536);", ""),
        },
        CodeFix::Flush if standard => (
            "System.out.flush();",
            ", and out.flush() of a stream around it, before the program waits or ends",
        ),
        CodeFix::Flush => (
            "out.flush();",
            " before the program waits or ends, or new PrintWriter(out, true), which writes each line",
        ),
        CodeFix::FlushBeforeFork if standard => ("System.out.flush();", " before ProcessBuilder.start()"),
        CodeFix::FlushBeforeFork => ("out.flush();", " before ProcessBuilder.start()"),
        CodeFix::CheckErrors if standard => {
            ("if (System.out.checkError()) System.exit(1);", ": PrintStream throws no exception")
        }
        CodeFix::CheckErrors => (
            "out.close();",
            ", outside of any catch that ignores IOException; PrintWriter needs checkError()",
        ),
        CodeFix::SyncRename => (
            "channel.force(true); channel.close(); Files.move(temporary, path, ATOMIC_MOVE, REPLACE_EXISTING); \
                try (FileChannel d = FileChannel.open(directory)) { d.force(true); }",
            "",
        ),
        CodeFix::WholeLines if object == StreamObject::Stdout => {
            ("System.out.println(line);", " with each line whole")
        }
        CodeFix::WholeLines => (
            "OutputStream out = new FileOutputStream(path, true);",
            ", and each line in one out.write without a buffer around it",
        ),
        CodeFix::ReadUnbuffered => (
            "int character = new FileInputStream(FileDescriptor.in).read();",
            " for each character up to the end of the line",
        ),
    };
    CodeText::new(code, note)
}

fn buffer_output(object: StreamObject) -> (&'static str, &'static str) {
    match object {
        StreamObject::Stdin | StreamObject::Stdout => (
            "PrintStream out = new PrintStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 65536));",
            " instead of System.out, and out.flush() at the end",
        ),
        StreamObject::Stderr => (
            "PrintStream out = new PrintStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.err), 65536));",
            " instead of System.err, and out.flush() where a message must appear at once",
        ),
        StreamObject::File | StreamObject::Pipe => (
            "OutputStream out = new BufferedOutputStream(new FileOutputStream(path), 65536);",
            " and out.close() at the end; no out.flush() in the loop",
        ),
        StreamObject::Socket => (
            "OutputStream out = new BufferedOutputStream(socket.getOutputStream(), 65536);",
            ", and out.flush() where the peer must get it",
        ),
    }
}
