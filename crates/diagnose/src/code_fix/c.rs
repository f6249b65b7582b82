//! C: stdio.

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
                    "if (ferror(stdout) | fclose(stdout)) { perror(\"stdout\"); exit(1); }"
                }
                StreamObject::Stderr => "if (ferror(stderr) | fclose(stderr)) exit(1);",
                StreamObject::File | StreamObject::Pipe | StreamObject::Socket => {
                    "if (ferror(f) | fclose(f)) { perror(\"output\"); exit(1); }"
                }
            },
            " at the end; check the results of write(2), fsync(2) and close(2) too",
        ),
        CodeFix::SyncRename => (
            "if (fflush(f) == 0 && fsync(fileno(f)) == 0 && fclose(f) == 0) rename(temporary, path); \
                int d = open(directory, O_RDONLY | O_DIRECTORY); fsync(d); close(d);",
            "",
        ),
        CodeFix::WholeLines if object == StreamObject::Stdout => {
            ("setvbuf(stdout, NULL, _IOLBF, 0);", " before the first output")
        }
        CodeFix::WholeLines => ("setvbuf(f, NULL, _IOLBF, 0);", " after fopen(path, \"a\")"),
        CodeFix::ReadUnbuffered => ("setvbuf(stdin, NULL, _IONBF, 0);", " before the first input"),
    };
    CodeText::new(code, note)
}

fn buffer_output(object: StreamObject) -> (&'static str, &'static str) {
    match object {
        StreamObject::Stdin | StreamObject::Stdout => (
            "setvbuf(stdout, NULL, _IOFBF, 65536);",
            " before the first output, then printf or fwrite; no _IOLBF, and no fflush or write(2) in the loop",
        ),
        StreamObject::Stderr => (
            "setvbuf(stderr, NULL, _IOFBF, 65536);",
            " before the first output, and fflush(stderr) where a message must appear at once",
        ),
        StreamObject::File => (
            "FILE *f = fopen(path, \"w\"); setvbuf(f, NULL, _IOFBF, 65536);",
            ", then putc or fwrite; no setbuf(f, NULL), and no fflush or write(2) in the loop",
        ),
        StreamObject::Pipe | StreamObject::Socket => (
            "FILE *f = fdopen(fd, \"w\"); setvbuf(f, NULL, _IOFBF, 65536);",
            ", then putc or fwrite; no setbuf(f, NULL), and no fflush or write(2) in the loop",
        ),
    }
}

fn buffer_input(object: StreamObject) -> (&'static str, &'static str) {
    let note = ", then getc, fgets or fread; no read(2) or pread(2) of a few bytes";
    match object {
        StreamObject::File => ("FILE *f = fopen(path, \"r\"); setvbuf(f, NULL, _IOFBF, 65536);", note),
        StreamObject::Pipe | StreamObject::Socket => {
            ("FILE *f = fdopen(fd, \"r\"); setvbuf(f, NULL, _IOFBF, 65536);", note)
        }
        _ => (
            "setvbuf(stdin, NULL, _IOFBF, 65536);",
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
