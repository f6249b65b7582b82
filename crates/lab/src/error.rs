//! Errors of the lab itself: of its experiments, files and compilers.

use std::io;
use std::path::PathBuf;

/// An error of the lab. Its text says what failed, on what, and why.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    /// No experiment has this name.
    #[error("no experiment {name}{}; 'weir lab' lists them", did_you_mean(.nearest))]
    Unknown {
        name: String,
        /// The experiment with the most similar name.
        nearest: Option<String>,
    },
    /// The experiment's folder is incomplete or wrong.
    #[error("experiment {name}: {why}")]
    Broken { name: String, why: String },
    /// A system call on a file of the experiment failed.
    #[error("{}: {call}: {}", .path.display(), weir_sys::errno_text(.source))]
    File { path: PathBuf, call: &'static str, source: io::Error },
    /// The experiment's program could not be compiled.
    #[error("{command}: {message}")]
    Compiler {
        /// The compiler's command line, quoted for a shell.
        command: String,
        /// The compiler's error output.
        message: String,
    },
    /// Stopped by the user.
    #[error("stopped")]
    Stopped,
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!(": did you mean {name}?"))
}
