//! What each runtime does with its bytes and what makes it do otherwise: one file a runtime, one table.

mod c;
mod cpp;
mod cpython;
mod gawk;
mod go;
mod grep;
mod hook;
mod java;
mod lua;
mod mawk;
mod node;
mod perl;
mod php;
mod pypy;
mod r;
mod ruby;
mod rust;
mod sed;
mod shell;
mod tcl;

use crate::plan::program::ResolvedProgram;

pub use hook::{Hook, Variable};

/// How a wish comes true in a runtime.
#[derive(Debug, Clone, Copy)]
pub enum RuntimeFix {
    /// The library reaches it: its streams are the C library's.
    Library,
    /// From outside: a walker reads its buffers.
    Outside,
    /// The same, but not for all that it may hold; what not.
    OutsidePart(&'static str),
    /// Variables that it knows, what they are set to, and what that does.
    Variables(&'static [(&'static str, &'static str)], &'static str),
    /// Its hook; what that does.
    Hook(&'static str),
    /// The hook does something else that stands in.
    HookStandsIn(&'static str),
    /// Options behind the command's name; what they do.
    Options(&'static [&'static str], &'static str),
    /// Nothing is to be done, and why.
    Already(&'static str),
    /// Nothing can be done, and why.
    Not(&'static str),
}

/// What is known of a runtime.
#[derive(Debug)]
pub struct RuntimeFacts {
    /// Its name for people.
    pub name: &'static str,
    /// Whether a program is run by it.
    pub is: fn(&ResolvedProgram) -> bool,
    /// Standard output without buffer.
    pub none: RuntimeFix,
    /// Standard output by lines.
    pub line: RuntimeFix,
    /// Standard output with a full buffer.
    pub full: RuntimeFix,
    /// No byte waits longer than a given time.
    pub delay: RuntimeFix,
    /// What waits at a kill is brought out.
    pub rescue: RuntimeFix,
    /// What waits at a fork is written once.
    pub fork: RuntimeFix,
    /// print and write(2) keep their order.
    pub order: RuntimeFix,
    /// Standard input, and files by name.
    pub others: RuntimeFix,
    /// What it loads when it starts.
    pub hook: Option<&'static Hook>,
    /// Whether these arguments keep it from looking at variables and hooks.
    pub deaf: fn(&ResolvedProgram) -> bool,
}

/// All that are known, those that are recognised by a name first. A new runtime is a file and a line here.
pub static ALL: [&RuntimeFacts; 19] = [
    &cpython::RUNTIME,
    &pypy::RUNTIME,
    &ruby::RUNTIME,
    &perl::RUNTIME,
    &tcl::RUNTIME,
    &node::RUNTIME,
    &java::RUNTIME,
    &gawk::RUNTIME,
    &mawk::RUNTIME,
    &sed::RUNTIME,
    &grep::RUNTIME,
    &php::RUNTIME,
    &r::RUNTIME,
    &lua::RUNTIME,
    &shell::RUNTIME,
    &go::RUNTIME,
    &rust::RUNTIME,
    &cpp::RUNTIME,
    &c::RUNTIME,
];

/// The one that runs a program: the last of the table fits every program.
pub fn of(program: &ResolvedProgram) -> &'static RuntimeFacts {
    ALL.iter().copied().find(|runtime| (runtime.is)(program)).unwrap_or(&c::RUNTIME)
}

/// Whether one of the program's names is one of these, with or without a version behind it.
fn named(program: &ResolvedProgram, names: &[&str]) -> bool {
    program.names.iter().any(|name| names.contains(&name.trim_end_matches(version)))
}

fn version(letter: char) -> bool {
    letter.is_ascii_digit() || letter == '.' || letter == '-'
}

/// It looks at its variables whatever its arguments are.
fn never(_: &ResolvedProgram) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::executable::{ExecutableFacts, SourceLanguage};

    fn name_of(names: &[&str], elf: ExecutableFacts) -> &'static str {
        let names = names.iter().map(|name| name.to_string()).collect();
        of(&ResolvedProgram { names, elf: Some(elf), ..ResolvedProgram::default() }).name
    }

    #[test]
    fn a_program_is_recognised_by_what_interprets_it() {
        let c = ExecutableFacts { native: true, ..ExecutableFacts::default() };
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
            assert_eq!(name_of(names, c.clone()), runtime, "{names:?}");
        }
        for (language, runtime) in
            [(SourceLanguage::Go, "Go"), (SourceLanguage::Rust, "Rust"), (SourceLanguage::Cpp, "C++")]
        {
            assert_eq!(
                name_of(&["prog"], ExecutableFacts { language: Some(language), ..c.clone() }),
                runtime
            );
        }
    }
}
