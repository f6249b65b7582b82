//! The command that starts the program of a running process again, for `weir peek` and `weir trace --pid`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use weir_control::plan::executable;
use weir_control::plan::program::ResolvedProgram;
use weir_model::{SourceLanguage, os_string_of};

use crate::script_directory::script_directory;

/// The text that the kernel adds to the name of a removed file or directory.
const REMOVED: &str = " (deleted)";

/// A program that was started: executable, arguments with the name first, and working directory, as /proc has them. Bytes that are no
/// UTF-8 are as [`text_of`] carries them.
pub struct StartedProgram<'a> {
    pub exe: &'a str,
    pub argv: Vec<&'a str>,
    pub directory: Option<&'a Path>,
    /// Other directories in which it may have been started.
    pub others: &'a [PathBuf],
}

/// The words that start a program again, and the directory for it if that is not the current one.
pub type OwnCommand = (Vec<String>, Option<PathBuf>);

impl StartedProgram<'_> {
    /// Returns the command that starts the program again. Fails with the reason why it is not known.
    pub fn command(&self) -> Result<OwnCommand, &'static str> {
        let words = self.words()?;
        let Some(own) = self.directory else { return Ok((words, None)) };
        let directory = script_directory(self.exe, &self.argv, own, self.others);
        let directory = directory.ok_or("it has left the directory in which it was started")?;
        let directory = Some(directory.as_path());
        let program =
            StartedProgram { exe: self.exe, argv: self.argv.clone(), directory, others: self.others };
        Ok((program.words()?, program.other_directory()))
    }

    /// Returns the words that start the program again in its directory. If the first argument would start another file, the
    /// executable's path replaces it. Fails with the reason why the words are not known.
    fn words(&self) -> Result<Vec<String>, &'static str> {
        let mut words: Vec<String> = self.argv.iter().map(|word| (*word).into()).collect();
        if self.exe.is_empty() || words.is_empty() {
            return Err("its executable and arguments cannot be read");
        }
        if self.exe.ends_with(REMOVED) && !Path::new(&os_string_of(self.exe)).exists() {
            return Err("its executable is removed");
        }
        if self
            .directory
            .is_some_and(|directory| directory.to_string_lossy().ends_with(REMOVED) && !directory.exists())
        {
            return Err("its working directory is removed");
        }
        if resolved(&words[0], self.directory).is_some_and(|found| starts(&found, self.exe)) {
            return Ok(words);
        }
        if is_title(&words) || words.len() == 1 && !is_compiled(self.exe) {
            return Err("it has replaced its arguments by a title");
        }
        words[0] = self.exe.into();
        Ok(words)
    }

    /// Returns the directory of the program if it is not the current one.
    fn other_directory(&self) -> Option<PathBuf> {
        let current = std::env::current_dir().ok();
        self.directory.filter(|directory| current.as_deref() != Some(directory)).map(Path::to_path_buf)
    }
}

/// Returns whether arguments are one text in the place of all, as Perl's `$0` and setproctitle(3) write them. The rest of their
/// memory is filled with NULs.
fn is_title(words: &[String]) -> bool {
    let (title, rest) = (&words[0], &words[1..]);
    let is_padded = !rest.is_empty() && rest.iter().all(String::is_empty);
    is_padded || rest.is_empty() && title.contains([' ', ':'])
}

/// Returns whether an executable is no interpreter, so that it has a meaning without a script.
fn is_compiled(exe: &str) -> bool {
    let language = executable::runtime(&ResolvedProgram::of(&[os_string_of(exe)])).facts.language;
    matches!(language, SourceLanguage::C | SourceLanguage::Cpp | SourceLanguage::Go | SourceLanguage::Rust)
}

/// Returns the file that a command's first word starts.
fn resolved(word: &str, directory: Option<&Path>) -> Option<PathBuf> {
    let exact = os_string_of(word);
    let word = match directory {
        Some(directory) if word.contains('/') => directory.join(exact).into(),
        _ => exact,
    };
    ResolvedProgram::of(&[word]).path
}

/// Returns whether a file is an executable, or a script that it interprets.
pub fn starts(file: &Path, executable: &str) -> bool {
    let inode = |path: &Path| fs::metadata(path).map(|about| (about.dev(), about.ino())).ok();
    let path = PathBuf::from(os_string_of(executable));
    let wanted = inode(&path);
    wanted.is_some() && (inode(file) == wanted || ends_in(file, &path) || ends_in(&path, file))
}

/// Returns whether a script is interpreted by an executable in the end.
fn ends_in(script: &Path, executable: &Path) -> bool {
    let program = ResolvedProgram::of(&[script.into()]);
    let real = fs::canonicalize(executable).unwrap_or_else(|_| executable.into());
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    program.script && program.names.last().is_some_and(|last| *last == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_started_program() {
        let of = |exe: &str, argv: &[&str], directory: Option<&str>| {
            let (argv, directory) = (argv.to_vec(), directory.map(Path::new));
            let program = StartedProgram { exe, argv, directory, others: &[] };
            program.words().map(|words| words.join(" "))
        };
        let title = Err("it has replaced its arguments by a title");
        assert_eq!(of("/bin/sleep", &["sleep", "9"], None), Ok("sleep 9".into()));
        assert_eq!(of("/bin/sleep", &["fancy-name", "9"], None), Ok("/bin/sleep 9".into()));
        assert_eq!(of("/bin/sleep", &["fancy-name"], None), Ok("/bin/sleep".into()));
        assert_eq!(of("/bin/sleep", &["./sleep", "9"], Some("/bin")), Ok("./sleep 9".into()));
        assert_eq!(of("/bin/sleep", &["sleep: busy"], None), title);
        assert_eq!(of("/usr/bin/perl", &["worker", "", ""], None), title);
        assert_eq!(of("/usr/bin/perl", &["worker"], None), title);
        let removed = Err("its working directory is removed");
        assert_eq!(of("/bin/sleep", &["sleep", "9"], Some("/nowhere/dd (deleted)")), removed);
        assert_eq!(of("/nowhere/x (deleted)", &["x"], None), Err("its executable is removed"));
        assert!(!weir_sys::proc::has_other_files(std::process::id()));
    }
}
