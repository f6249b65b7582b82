//! The private directory of one version of an experiment: its files, and its program compiled.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_model::lab::ProgramVersion;

use crate::{Error, Experiment, library};

/// A temporary directory with the files and compiled programs of an experiment. Removed on drop.
#[derive(Debug)]
pub struct Stage {
    root: tempfile::TempDir,
    /// The compiler commands of the programs, as typed in a shell.
    pub commands: Vec<String>,
}

impl Stage {
    /// Copies the experiment's files and compiles its programs.
    pub fn new(experiment: &Experiment) -> Result<Stage, Error> {
        let made = tempfile::Builder::new().prefix("weir-lab-").tempdir();
        let root = made.map_err(|source| file(Path::new("the temporary directory"), "mkdir", source))?;
        let mut stage = Stage { root, commands: Vec::new() };
        let files = library::files(experiment)?;
        for (name, content) in &files {
            stage.put(name, content)?;
        }
        stage.put("functions.sh", library::functions())?;
        for (name, _) in &files {
            if let Some(program) = name.strip_suffix(".c").or(name.strip_suffix(".S")) {
                stage.compile(experiment, name, program)?;
            }
        }
        Ok(stage)
    }

    /// Returns the directory with the files.
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// Creates a working directory for a version. Returns it and the path of the version's program.
    pub fn run_directory(&self, version: ProgramVersion) -> Result<(PathBuf, PathBuf), Error> {
        let name = version.name();
        let directory = self.path().join(format!("run-{name}"));
        fs::create_dir_all(&directory).map_err(|source| file(&directory, "mkdir", source))?;
        let program = fs::read_dir(self.path())
            .map_err(|source| file(self.path(), "readdir", source))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.file_stem().is_some_and(|stem| stem == name) && !is_source(path))
            .min();
        Ok((directory, program.unwrap_or_else(|| self.path().join(name))))
    }

    fn put(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        let path = self.path().join(name);
        let failed = |source| file(&path, "write", source);
        fs::write(&path, content).map_err(failed)?;
        let mode = if content.starts_with(b"#!") { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(failed)
    }

    fn compile(&mut self, experiment: &Experiment, source: &str, program: &str) -> Result<(), Error> {
        let command = command(experiment, source, program);
        let mut words = command.split(' ');
        let ran = Command::new(words.next().unwrap_or("cc")).args(words).current_dir(self.path()).output();
        let message = match ran {
            Ok(output) if output.status.success() => {
                self.commands.push(command);
                return Ok(());
            }
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_string(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                "no C compiler found: install gcc, or set CC".into()
            }
            Err(error) => error.to_string(),
        };
        Err(Error::Compiler { command, message })
    }
}

/// Returns the compiler command of a program, as typed in a shell.
pub(crate) fn command(experiment: &Experiment, source: &str, program: &str) -> String {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let flags: String = experiment.cflags.iter().map(|flag| format!(" {flag}")).collect();
    format!("{compiler} -O1 -o {program} {source}{flags}")
}

fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "c" || extension == "S")
}

fn file(path: &Path, call: &'static str, source: io::Error) -> Error {
    Error::File { path: path.into(), call, source }
}
