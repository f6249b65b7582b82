//! The table of runtimes: how a program of each buffers its output, and how `weir run` changes that.
//!
//! Pure data: an entry names its programs, its fixes and its hook file. [`crate::plan`] chooses and applies a fix.

mod go;
mod hook;
mod java;
mod node;
mod perl;
mod php;
mod python;
mod ruby;
mod rust;
mod stdio;
mod tcl;

use std::ffi::OsString;

pub use hook::{Hook, HookVariable};

/// A language whose compiled programs have their own streams. The ELF file tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SourceLanguage {
    Go,
    Rust,
    Cpp,
}

/// How the program of a runtime is recognised.
#[derive(Debug, Clone, Copy)]
pub enum Detection {
    /// By a name of the program or of its interpreter, with or without a version after it.
    ProgramNames(&'static [&'static str]),
    /// By the language that it was compiled from.
    Language(SourceLanguage),
    /// Matches every program that no other entry matches.
    AnyProgram,
}

/// The way in which a runtime honours an option of `weir run`. Each text is a sentence for `weir run --why`.
#[derive(Debug, Clone, Copy)]
pub enum RuntimeFix {
    /// The preload library calls setvbuf(3) and its like.
    Library,
    /// The supervisor drains the runtime's buffers, which a walker reads.
    Outside,
    /// As `Outside`, but not for these buffers.
    OutsideExcept(&'static str),
    /// Environment variables of the runtime.
    #[allow(missing_docs)]
    Environment { variables: &'static [(&'static str, &'static str)], effect: &'static str },
    /// The runtime's hook file, named in its environment.
    Hook(&'static str),
    /// The hook cannot do exactly this, and does something close to it.
    HookSubstitute(&'static str),
    /// Options after the command's name.
    #[allow(missing_docs)]
    Options { options: &'static [&'static str], effect: &'static str },
    /// The runtime does it already.
    NotNeeded(&'static str),
    /// No fix exists, for this reason.
    Impossible(&'static str),
}

/// The fixes of a runtime, one for each kind of option.
#[derive(Debug, Clone, Copy)]
pub struct Fixes {
    /// `--stdout none`.
    pub unbuffered: RuntimeFix,
    /// `--stdout line`.
    pub line_buffered: RuntimeFix,
    /// `--stdout full`.
    pub fully_buffered: RuntimeFix,
    /// `--max-delay`.
    pub max_delay: RuntimeFix,
    /// `--rescue`.
    pub rescue: RuntimeFix,
    /// `--fix-fork`.
    pub fork: RuntimeFix,
    /// `--fix-order`.
    pub order: RuntimeFix,
    /// `--stdin`, `--stderr` and `--file`.
    pub other_streams: RuntimeFix,
}

/// Arguments with which a program ignores the variables and the hook of its runtime.
#[derive(Debug, Clone, Copy)]
pub enum IgnoresEnvironment {
    /// No argument has this effect.
    Never,
    /// One of these letters in an option before the script or one of the words `end`.
    #[allow(missing_docs)]
    OptionLetters { letters: &'static [char], end: &'static [&'static str] },
    /// One of these words anywhere.
    Words(&'static [&'static str]),
}

impl IgnoresEnvironment {
    /// Tells whether a program with these arguments ignores its environment.
    pub fn applies(&self, arguments: &[OsString]) -> bool {
        let mut words = arguments.iter().map(|word| word.to_string_lossy());
        match self {
            Self::Never => false,
            Self::OptionLetters { letters, end } => words
                .take_while(|word| word.starts_with('-') && !end.contains(&word.as_ref()))
                .any(|word| !word.starts_with("--") && word.contains(*letters)),
            Self::Words(known) => words.any(|word| known.contains(&word.as_ref())),
        }
    }
}

/// One runtime's entry in the table.
#[derive(Debug)]
pub struct RuntimeFacts {
    /// The name in reports.
    pub name: &'static str,
    #[allow(missing_docs)]
    pub detection: Detection,
    #[allow(missing_docs)]
    pub fixes: Fixes,
    /// The reason why `--coalesce` cannot gather this runtime's calls; None if it can.
    pub coalesce_limit: Option<&'static str>,
    #[allow(missing_docs)]
    pub hook: Option<&'static Hook>,
    #[allow(missing_docs)]
    pub ignores_environment: IgnoresEnvironment,
}

impl RuntimeFacts {
    /// Tells whether a program with these names and of this language belongs to the runtime.
    fn matches(&self, program_names: &[String], language: Option<SourceLanguage>) -> bool {
        match self.detection {
            Detection::ProgramNames(known) => {
                program_names.iter().any(|name| known.contains(&without_version(name)))
            }
            Detection::Language(of) => language == Some(of),
            Detection::AnyProgram => true,
        }
    }
}

fn without_version(name: &str) -> &str {
    name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.' || letter == '-')
}

/// Returns all runtimes in the order of detection: by name, then by language, then [`stdio::C`], which matches all.
pub fn all() -> impl Iterator<Item = &'static RuntimeFacts> {
    let interpreters = [
        &python::CPYTHON,
        &python::PYPY,
        &ruby::RUBY,
        &perl::PERL,
        &tcl::TCL,
        &node::NODE,
        &java::JAVA,
        &php::PHP,
    ];
    let compiled = [&go::GO, &rust::RUST, &stdio::CPP, &stdio::C];
    interpreters.into_iter().chain(&stdio::NAMED).chain(compiled)
}

/// Returns the runtime of a program. `program_names` are its own name and those of its interpreters.
pub fn detect(program_names: &[String], language: Option<SourceLanguage>) -> &'static RuntimeFacts {
    all().find(|runtime| runtime.matches(program_names, language)).unwrap_or(&stdio::C)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(names: &[&str], language: Option<SourceLanguage>) -> &'static str {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        detect(&names, language).name
    }

    #[test]
    fn a_program_is_recognised_by_its_interpreter() {
        for (names, runtime) in [
            (&["python3", "bash"][..], "Python"),
            (&["tool.py", "python3.11"], "Python"),
            (&["pypy3.9"], "PyPy"),
            (&["ruby3.1"], "Ruby"),
            (&["prove", "perl"], "Perl"),
            (&["tclsh", "tclsh8.6"], "Tcl"),
            (&["nodejs"], "Node"),
            (&["java"], "Java"),
            (&["awk", "gawk"], "gawk"),
            (&["awk", "mawk"], "mawk"),
            (&["lua5.4"], "Lua"),
            (&["php8.2"], "PHP"),
            (&["sh", "dash"], "shell"),
            (&["cut"], "C"),
        ] {
            assert_eq!(detected(names, None), runtime, "{names:?}");
        }
        for (language, runtime) in
            [(SourceLanguage::Go, "Go"), (SourceLanguage::Rust, "Rust"), (SourceLanguage::Cpp, "C++")]
        {
            assert_eq!(detected(&["prog"], Some(language)), runtime);
        }
    }
}
