//! Fixes as code: for each kind of fix the text for a language and an object. One file a language.

mod awk;
mod c;
mod cpp;
mod go;
mod java;
mod logger;
mod lua;
mod node;
mod other;
mod perl;
mod php;
mod python;
mod ruby;
mod rust;
mod shell;
mod tcl;

use weir_model::SourceLanguage;

pub use self::logger::logger_flush;

/// A change to a program's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeFix {
    /// Write through a buffer instead of with many small calls.
    BufferOutput,
    /// Read blocks instead of a few bytes at a time.
    BufferInput,
    /// Flush before the program waits or ends.
    Flush,
    /// Flush before fork(2) and execve(2).
    FlushBeforeFork,
    /// Check the results of output calls.
    CheckErrors,
    /// Sync a file before its rename and the directory after it.
    SyncRename,
    /// Read no more than is used, because another program reads on.
    ReadUnbuffered,
    /// Write each line as a whole, because others write to the same file.
    WholeLines,
}

/// The object in a program's code that a stream belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum StreamObject {
    Stdin,
    Stdout,
    Stderr,
    /// A file that the program opened.
    File,
    /// A pipe that the program opened or created.
    Pipe,
    Socket,
}

/// A fix as code. Names such as `path`, `f`, `fd` and `data` are placeholders for names of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeText {
    /// Valid code, without a line break; empty if the language has none.
    pub code: &'static str,
    /// The words after the code: where it belongs, and what it replaces. They have no full stop.
    pub note: &'static str,
}

impl CodeText {
    const fn new(code: &'static str, note: &'static str) -> Self {
        Self { code, note }
    }

    /// Returns the flush without the line buffering that the note has as another way: bytes after the last newline wait in
    /// a line buffer too.
    pub fn without_line_buffering(self) -> Self {
        let ways = [self.note.rfind(", or "), self.note.rfind("; or ")];
        let note = match ways.into_iter().flatten().max().map(|at| self.note.split_at(at)) {
            Some((flush, other)) if other.contains("line") || other.contains("_IOLBF") => flush,
            _ => self.note,
        };
        Self { note, ..self }
    }
}

impl std::fmt::Display for CodeText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.code, self.note)
    }
}

impl CodeFix {
    /// Every fix, in the order of this type.
    pub const ALL: [CodeFix; 8] = [
        CodeFix::BufferOutput,
        CodeFix::BufferInput,
        CodeFix::Flush,
        CodeFix::FlushBeforeFork,
        CodeFix::CheckErrors,
        CodeFix::SyncRename,
        CodeFix::ReadUnbuffered,
        CodeFix::WholeLines,
    ];

    /// Returns the objects for which a finding proposes this fix.
    pub fn objects(self) -> &'static [StreamObject] {
        match self {
            CodeFix::BufferInput => {
                &[StreamObject::Stdin, StreamObject::File, StreamObject::Pipe, StreamObject::Socket]
            }
            CodeFix::SyncRename => &[StreamObject::File],
            CodeFix::ReadUnbuffered => &[StreamObject::Stdin],
            CodeFix::WholeLines => &[StreamObject::Stdout, StreamObject::File, StreamObject::Pipe],
            _ => &[
                StreamObject::Stdout,
                StreamObject::Stderr,
                StreamObject::File,
                StreamObject::Pipe,
                StreamObject::Socket,
            ],
        }
    }
}

/// Returns a fix as code of a language, for an object.
pub fn code_fix(language: SourceLanguage, fix: CodeFix, object: StreamObject) -> CodeText {
    match language {
        SourceLanguage::C => c::code(fix, object),
        SourceLanguage::Cpp => cpp::code(fix, object),
        SourceLanguage::Python => python::code(fix, object),
        SourceLanguage::Perl => perl::code(fix, object),
        SourceLanguage::Ruby => ruby::code(fix, object),
        SourceLanguage::Shell => shell::code(fix, object),
        SourceLanguage::Awk => awk::code(fix, object),
        SourceLanguage::Lua => lua::code(fix, object),
        SourceLanguage::Node => node::code(fix, object),
        SourceLanguage::Tcl => tcl::code(fix, object),
        SourceLanguage::Java => java::code(fix, object),
        SourceLanguage::Go => go::code(fix, object),
        SourceLanguage::Rust => rust::code(fix, object),
        SourceLanguage::Php => php::code(fix, object),
        SourceLanguage::Other => other::code(fix, object),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_newline_gets_no_line_buffering() {
        const LANGUAGES: [SourceLanguage; 15] = [
            SourceLanguage::C,
            SourceLanguage::Cpp,
            SourceLanguage::Python,
            SourceLanguage::Perl,
            SourceLanguage::Ruby,
            SourceLanguage::Shell,
            SourceLanguage::Awk,
            SourceLanguage::Lua,
            SourceLanguage::Node,
            SourceLanguage::Tcl,
            SourceLanguage::Java,
            SourceLanguage::Go,
            SourceLanguage::Rust,
            SourceLanguage::Php,
            SourceLanguage::Other,
        ];
        for language in LANGUAGES {
            for object in CodeFix::Flush.objects() {
                let flush = code_fix(language, CodeFix::Flush, *object);
                let cut = flush.without_line_buffering();
                assert!(cut.code == flush.code && flush.note.starts_with(cut.note), "{cut}");
                let by_lines = ["_IOLBF", "buffering", "setvbuf", "each line"];
                assert!(!by_lines.iter().any(|word| cut.note.contains(word)), "{language:?}: {cut}");
                assert!(!cut.note.ends_with([',', ';']), "{cut}");
            }
        }
        let python = code_fix(SourceLanguage::Python, CodeFix::Flush, StreamObject::Stdout);
        let text = "sys.stdout.flush() or print(…, flush=True) before the program waits or ends";
        assert_eq!(python.without_line_buffering().to_string(), text);
        let perl = code_fix(SourceLanguage::Perl, CodeFix::Flush, StreamObject::Stdout);
        assert_eq!(perl.without_line_buffering(), perl, "autoflush writes every print");
    }
}
