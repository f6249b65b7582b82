//! Code advice for Go: bufio.

use super::{CodeFix, CodeText, StreamObject};

pub(super) fn code(fix: CodeFix, object: StreamObject) -> CodeText {
    let (code, note) = match fix {
        CodeFix::BufferOutput => (
            match object {
                StreamObject::Stdin | StreamObject::Stdout => {
                    "w := bufio.NewWriterSize(os.Stdout, 65536); defer w.Flush()"
                }
                StreamObject::Stderr => "w := bufio.NewWriterSize(os.Stderr, 65536); defer w.Flush()",
                StreamObject::File | StreamObject::Pipe => {
                    "w := bufio.NewWriterSize(f, 65536); defer w.Flush()"
                }
                StreamObject::Socket => "w := bufio.NewWriterSize(conn, 65536); defer w.Flush()",
            },
            " and w.Write or fmt.Fprint(w, …); os.Exit runs no deferred calls",
        ),
        CodeFix::BufferInput => (
            match object {
                StreamObject::Stdin => "r := bufio.NewReaderSize(os.Stdin, 65536)",
                StreamObject::Socket => "r := bufio.NewReaderSize(conn, 65536)",
                _ => "r := bufio.NewReaderSize(f, 65536)",
            },
            " and r.ReadByte, r.ReadString or io.ReadFull",
        ),
        CodeFix::Flush => ("w.Flush()", " before it waits or calls os.Exit, which runs no deferred calls"),
        CodeFix::FlushBeforeFork => ("w.Flush()", " before exec.Command(…).Run and syscall.Exec"),
        CodeFix::CheckErrors => match object {
            StreamObject::Stdin | StreamObject::Stdout | StreamObject::Stderr => (
                "if err := w.Flush(); err != nil { log.Fatal(err) }",
                "; check fmt.Print and os.Stdout.Write too",
            ),
            StreamObject::Socket => (
                "if err := w.Flush(); err != nil { log.Fatal(err) }",
                "; check conn.Write and conn.Close too",
            ),
            _ => (
                "if err := w.Flush(); err != nil { log.Fatal(err) }; if err := f.Close(); err != nil { log.Fatal(err) }",
                "; check f.Write and f.Sync too",
            ),
        },
        CodeFix::SyncRename => (
            "f.Sync(); f.Close(); os.Rename(temporary, path); \
                if d, err := os.Open(directory); err == nil { d.Sync(); d.Close() }",
            ", each with its error checked",
        ),
        CodeFix::WholeLines if object == StreamObject::Stdout => {
            ("os.Stdout.WriteString(line)", " with each line whole")
        }
        CodeFix::WholeLines => {
            ("f.WriteString(line)", " with each line whole, after os.OpenFile with os.O_APPEND")
        }
        CodeFix::ReadUnbuffered => {
            ("n, err := os.Stdin.Read(make([]byte, 1))", " for each byte up to the end of the line")
        }
    };
    CodeText::new(code, note)
}
