//! The source language of a process. It selects the code of a fix and is never evidence of a finding.

use weir_model::trace::RuntimeId;

use crate::context::RuleContext;

/// A language with its own buffered streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceLanguage {
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

/// Interpreters by the prefix of their name, because of versions such as `python3.11`.
const INTERPRETERS: &[(&str, SourceLanguage)] = &[
    ("python", SourceLanguage::Python),
    ("pypy", SourceLanguage::Python),
    ("perl", SourceLanguage::Perl),
    ("ruby", SourceLanguage::Ruby),
    ("node", SourceLanguage::Node),
    ("tclsh", SourceLanguage::Tcl),
    ("wish", SourceLanguage::Tcl),
    ("java", SourceLanguage::Java),
    ("lua", SourceLanguage::Lua),
    ("gawk", SourceLanguage::Awk),
    ("mawk", SourceLanguage::Awk),
    ("awk", SourceLanguage::Awk),
];

const SHELLS: &[&str] = &["sh", "dash", "bash", "mksh", "ksh", "zsh", "ash", "busybox"];

impl RuleContext<'_> {
    /// Returns the language of the image that a process ran at a time: by the interpreter's name, else by the runtime whose
    /// buffers are in its memory.
    pub fn language(&self, pid: u32, at_s: f64) -> SourceLanguage {
        let Some((_, image)) = self.image_at(pid, at_s) else { return SourceLanguage::C };
        let exe = image.exe.rsplit('/').next().unwrap_or_default();
        for name in [exe, image.comm.as_str()] {
            if SHELLS.contains(&name) {
                return SourceLanguage::Shell;
            }
            if let Some((_, language)) = INTERPRETERS.iter().find(|(start, _)| name.starts_with(start)) {
                return *language;
            }
        }
        let walkers =
            || self.snapshots(pid).iter().flat_map(|snapshot| snapshot.buffers).map(|buffer| buffer.walker);
        match () {
            () if walkers().any(|walker| walker == RuntimeId::CPYTHON) => SourceLanguage::Python,
            () if walkers().any(|walker| walker == RuntimeId::PERL) => SourceLanguage::Perl,
            () if walkers().any(|walker| walker == RuntimeId::RUBY) => SourceLanguage::Ruby,
            () if walkers().any(|walker| walker == RuntimeId::TCL) => SourceLanguage::Tcl,
            () if walkers().any(|walker| walker == RuntimeId::GO) => SourceLanguage::Go,
            () if walkers().any(|walker| walker == RuntimeId::RUST) => SourceLanguage::Rust,
            () => SourceLanguage::C,
        }
    }
}
