//! Code advice for C: stdio.

use super::{CodeFix, CodeText, StreamObject};

pub(super) fn code(fix: CodeFix, object: StreamObject) -> CodeText {
    let (code, note) = match fix {
        CodeFix::BufferOutput => buffer_output(object),
        CodeFix::BufferInput => buffer_input(object),
        CodeFix::Flush => flush(object),
        CodeFix::FlushBeforeFork => (
            "fflush(NULL);",
            ", or fclose of each stream, before fork, exec and system; _exit in a child that does not exec",
        ),
        CodeFix::CheckErrors => (
            match object {
                StreamObject::Stdin | StreamObject::Stdout => {
                    "if (fflush(stdout) == EOF || ferror(stdout) || fclose(stdout) == EOF) { perror(\"stdout\"); exit(1); }"
                }
                StreamObject::Stderr => "if (ferror(stderr) || fclose(stderr) == EOF) exit(1);",
                StreamObject::File | StreamObject::Pipe | StreamObject::Socket => {
                    "if (fflush(f) == EOF || ferror(f) || fclose(f) == EOF) { perror(\"output\"); exit(1); }"
                }
            },
            " at the end; check the results of write(2), fsync(2) and close(2) too",
        ),
        CodeFix::SyncRename => (
            "if (fflush(f) != 0 || fsync(fileno(f)) != 0 || fclose(f) != 0 || rename(temporary, path) != 0) { perror(path); exit(1); } \
                int d = open(directory, O_RDONLY | O_DIRECTORY); if (fsync(d) != 0) { perror(directory); exit(1); } close(d);",
            "",
        ),
        CodeFix::WholeLines if object == StreamObject::Stdout => (
            "setvbuf(stdout, NULL, _IOLBF, 0);",
            " before the first output, and no fflush or write(2) within a line",
        ),
        CodeFix::WholeLines => (
            "setvbuf(f, NULL, _IOLBF, 0);",
            " after fopen(path, \"a\"), and no fflush or write(2) within a line",
        ),
        CodeFix::ReadUnbuffered => ("setvbuf(stdin, NULL, _IONBF, 0);", " before the first input"),
    };
    CodeText::new(code, note)
}

/// With NULL for the buffer glibc and musl ignore the size: the stream keeps blocks of 4 KiB, or of 1 KiB.
fn buffer_output(object: StreamObject) -> (&'static str, &'static str) {
    match object {
        StreamObject::Stdin | StreamObject::Stdout => (
            "static char buffer[65536]; setvbuf(stdout, buffer, _IOFBF, sizeof buffer);",
            " before the first output, then printf or fwrite; no _IOLBF, and no fflush or write(2) in the loop",
        ),
        StreamObject::Stderr => (
            "static char buffer[65536]; setvbuf(stderr, buffer, _IOFBF, sizeof buffer);",
            " before the first output, and fflush(stderr) where a message must appear at once",
        ),
        StreamObject::File => (
            "FILE *f = fopen(path, \"w\"); static char buffer[65536]; setvbuf(f, buffer, _IOFBF, sizeof buffer);",
            ", then putc or fwrite; no setbuf(f, NULL), and no fflush or write(2) in the loop",
        ),
        StreamObject::Pipe | StreamObject::Socket => (
            "FILE *f = fdopen(fd, \"w\"); static char buffer[65536]; setvbuf(f, buffer, _IOFBF, sizeof buffer);",
            ", then putc or fwrite; no setbuf(f, NULL), and no fflush or write(2) in the loop",
        ),
    }
}

fn buffer_input(object: StreamObject) -> (&'static str, &'static str) {
    let note = ", then getc, fgets or fread; no read(2) or pread(2) of a few bytes";
    match object {
        StreamObject::File => (
            "FILE *f = fopen(path, \"r\"); static char buffer[65536]; setvbuf(f, buffer, _IOFBF, sizeof buffer);",
            note,
        ),
        StreamObject::Pipe | StreamObject::Socket => (
            "FILE *f = fdopen(fd, \"r\"); static char buffer[65536]; setvbuf(f, buffer, _IOFBF, sizeof buffer);",
            note,
        ),
        _ => (
            "static char buffer[65536]; setvbuf(stdin, buffer, _IOFBF, sizeof buffer);",
            " before the first input, then getc, fgets or fread; no read(2) of a few bytes",
        ),
    }
}

fn flush(object: StreamObject) -> (&'static str, &'static str) {
    match object {
        StreamObject::Stdin | StreamObject::Stdout => (
            "fflush(stdout);",
            " before the program waits or ends, because _exit and signals flush nothing; or setvbuf(stdout, NULL, _IOLBF, 0) at the start",
        ),
        StreamObject::Stderr => ("fflush(stderr);", " before the program waits or ends"),
        StreamObject::File | StreamObject::Pipe | StreamObject::Socket => (
            "fflush(f);",
            " or fflush(NULL) before the program waits or ends, because _exit and signals flush nothing; or setvbuf(f, NULL, _IOLBF, 0) after fopen",
        ),
    }
}
