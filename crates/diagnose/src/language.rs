//! Which language a process is written in, for a cure as code. Nothing is ever found because of it.

use weir_model::trace::RuntimeId;

use crate::context::Context;

/// A language with its own way to buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    C,
    Python,
    Perl,
    Ruby,
    Shell,
    Awk,
    Lua,
    Node,
    Tcl,
    Java,
    Go,
    Rust,
}

/// Interpreters by how their names begin.
const INTERPRETERS: &[(&str, Language)] = &[
    ("python", Language::Python),
    ("pypy", Language::Python),
    ("perl", Language::Perl),
    ("ruby", Language::Ruby),
    ("node", Language::Node),
    ("tclsh", Language::Tcl),
    ("wish", Language::Tcl),
    ("java", Language::Java),
    ("lua", Language::Lua),
    ("gawk", Language::Awk),
    ("mawk", Language::Awk),
    ("awk", Language::Awk),
];

const SHELLS: &[&str] = &["sh", "dash", "bash", "mksh", "ksh", "zsh", "ash", "busybox"];

impl Context<'_> {
    /// The language of what a process ran at a time: by the interpreter, else by the buffers in its memory.
    pub fn language(&self, pid: u32, at_s: f64) -> Language {
        let Some((_, image)) = self.image_at(pid, at_s) else { return Language::C };
        let exe = image.exe.rsplit('/').next().unwrap_or_default();
        for name in [exe, image.comm.as_str()] {
            if SHELLS.contains(&name) {
                return Language::Shell;
            }
            if let Some((_, language)) = INTERPRETERS.iter().find(|(start, _)| name.starts_with(start)) {
                return *language;
            }
        }
        let walkers = || self.looks(pid).iter().flat_map(|look| look.buffers).map(|buffer| buffer.walker);
        match () {
            () if walkers().any(|walker| walker == RuntimeId::CPYTHON) => Language::Python,
            () if walkers().any(|walker| walker == RuntimeId::PERL) => Language::Perl,
            () if walkers().any(|walker| walker == RuntimeId::RUBY) => Language::Ruby,
            () if walkers().any(|walker| walker == RuntimeId::TCL) => Language::Tcl,
            () if walkers().any(|walker| walker == RuntimeId::GO) => Language::Go,
            () if walkers().any(|walker| walker == RuntimeId::RUST) => Language::Rust,
            () => Language::C,
        }
    }
}
