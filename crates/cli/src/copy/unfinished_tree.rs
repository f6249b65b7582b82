//! `--resume` of a tree: recognises an unfinished one, and names the command that continues it.

use std::path::PathBuf;

use weir_copier::{CopyDestination, CopyOptions, TreeMarker, quote};
use weir_model::shell_quoted;

use crate::output::own_command;

/// The tree that a command copies: one directory to one name.
pub struct TreeCopy {
    marker: TreeMarker,
    resume: bool,
    /// The target does not exist yet. The same command would later copy into it, because it is a directory then.
    names_new_tree: bool,
    /// The target is a directory already, so the command copies into it.
    goes_into: Option<PathBuf>,
    target: PathBuf,
}

impl TreeCopy {
    /// Returns the tree of a command; None if it copies anything else.
    pub fn of(options: &CopyOptions, sources: &[PathBuf], destination: &CopyDestination) -> Option<Self> {
        let ([source], CopyDestination::Guess(path) | CopyDestination::Exact(path)) = (sources, destination)
        else {
            return None;
        };
        let marker = TreeMarker::of(source, path).filter(|_| options.recursive)?;
        let guesses = matches!(destination, CopyDestination::Guess(_));
        Some(Self {
            marker,
            resume: options.resume,
            names_new_tree: guesses && options.resume && !path.is_dir(),
            goes_into: (guesses && path.is_dir()).then(|| path.clone()),
            target: path.clone(),
        })
    }

    /// Returns why this command must not run: it would copy into a tree that an earlier run has not finished.
    pub fn refusal(&self) -> Option<String> {
        let target = self.goes_into.as_ref().filter(|_| self.marker.is_there())?;
        let target = quote(target.as_os_str().as_encoded_bytes());
        let marker = quote(self.marker.path().as_os_str().as_encoded_bytes());
        let command = self.continuing_command();
        Some(format!(
            "{target} is a copy of this source that 'weir copy --resume' has not finished, so nothing was copied into it\n\
             weir copy: this continues the tree: {command}\n\
             weir copy: to copy into it all the same, remove {marker} first"
        ))
    }

    /// Notes that the tree is not finished, before its directory exists. Returns a warning if that fails.
    pub fn begin(&self) -> Option<String> {
        let made = self.names_new_tree.then(|| self.marker.make())?;
        let error = made.err()?;
        let (marker, error) = (self.marker.path().display(), weir_sys::errno_text(&error));
        Some(format!("{marker}: {error}; after a kill the next copy does not recognise the unfinished tree"))
    }

    /// Notes the end of the copy. Returns the command that continues the tree if it is not finished and needs another command.
    pub fn end(&self, is_finished: bool) -> Option<String> {
        let is_unmade = self.names_new_tree && !self.target.is_dir();
        if is_finished && self.goes_into.is_none() || is_unmade {
            self.marker.remove();
        }
        (self.names_new_tree && !is_finished).then(|| self.continuing_command())
    }

    /// Returns this command with -T and --resume, as a line for a shell.
    fn continuing_command(&self) -> String {
        let mut words = own_command();
        words.insert(2, "-T".into());
        if !self.resume {
            words.insert(3, "--resume".into());
        }
        words.iter().map(|word| shell_quoted(word)).collect::<Vec<_>>().join(" ")
    }
}
