//! Code advice for Rust: std::io.

use super::{CodeFix, CodeText, StreamObject};

pub(super) fn code(fix: CodeFix, object: StreamObject) -> CodeText {
    let (code, note) = match fix {
        CodeFix::BufferOutput => (
            match object {
                StreamObject::Stdin | StreamObject::Stdout => {
                    "let mut out = BufWriter::with_capacity(65536, io::stdout().lock());"
                }
                StreamObject::Stderr => "let mut out = BufWriter::with_capacity(65536, io::stderr().lock());",
                StreamObject::File | StreamObject::Pipe => {
                    "let mut out = BufWriter::with_capacity(65536, f);"
                }
                StreamObject::Socket => "let mut out = BufWriter::with_capacity(65536, stream);",
            },
            " and write!(out, …); no println! and no flush in the loop, and out.flush()? at the end",
        ),
        CodeFix::BufferInput => (
            match object {
                StreamObject::Stdin => "let mut input = BufReader::with_capacity(65536, io::stdin().lock());",
                StreamObject::Socket => "let mut input = BufReader::with_capacity(65536, stream);",
                _ => "let mut input = BufReader::with_capacity(65536, f);",
            },
            " and input.read_line, input.lines or input.read_exact",
        ),
        CodeFix::Flush => match object {
            StreamObject::Stdin | StreamObject::Stdout => (
                "io::stdout().flush()?;",
                ", and out.flush()? of a BufWriter around it, before it waits, aborts or calls process::exit",
            ),
            _ => ("out.flush()?;", " before it waits, aborts or calls process::exit"),
        },
        CodeFix::FlushBeforeFork => match object {
            StreamObject::Stdin | StreamObject::Stdout => (
                "io::stdout().flush()?;",
                ", and out.flush()? of a BufWriter around it, before Command::spawn and exec",
            ),
            _ => ("out.flush()?;", " before Command::spawn and exec"),
        },
        CodeFix::CheckErrors => match object {
            StreamObject::Stdin | StreamObject::Stdout => {
                ("io::stdout().flush()?;", " at the end: a BufWriter that is dropped ignores its error")
            }
            _ => ("out.flush()?;", " at the end: a BufWriter that is dropped ignores its error"),
        },
        CodeFix::SyncRename => {
            ("f.sync_all()?; fs::rename(temporary, path)?; File::open(directory)?.sync_all()?;", "")
        }
        CodeFix::WholeLines if object == StreamObject::Stdout => {
            ("io::stdout().write_all(line.as_bytes())?;", " with each line whole")
        }
        CodeFix::WholeLines => {
            ("f.write_all(line.as_bytes())?;", " with each line whole, after OpenOptions::new().append(true)")
        }
        CodeFix::ReadUnbuffered => (
            "let mut input = ManuallyDrop::new(unsafe { File::from_raw_fd(0) }); input.read_exact(&mut [0])?;",
            ", for each byte up to the end of the line: io::stdin() always reads blocks",
        ),
    };
    CodeText::new(code, note)
}
