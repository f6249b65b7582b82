//! What can go wrong with an experiment itself, with what to do about it.

use std::io;
use std::path::PathBuf;

/// An error that says what failed, on what and why.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none of this name.
    #[error("there is no experiment {name}{}; 'weir lab' lists them", did_you_mean(.nearest))]
    Unknown {
        /// The name.
        name: String,
        /// The one that may be meant.
        nearest: Option<String>,
    },
    /// Its folder is not as it should be.
    #[error("experiment {name}: {why}")]
    Broken {
        /// The name.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A file of it could not be made or read.
    #[error("{}: {call}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The call.
        call: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Its program was not compiled.
    #[error("{command}: {said}")]
    Compiler {
        /// As one would type it.
        command: String,
        /// What the compiler said.
        said: String,
    },
    /// Stopped by the user.
    #[error("stopped")]
    Stopped,
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!(": did you mean {name}?"))
}
