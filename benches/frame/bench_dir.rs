//! The directory of a benchmark: its compiled programs, input and output.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::BoxError;

/// A temporary directory, removed on drop.
pub struct BenchDir {
    dir: TempDir,
    /// $WEIR_BENCH_QUICK is set: a trial of the benchmark itself, with few rounds and little data.
    pub quick: bool,
}

impl BenchDir {
    /// Makes the directory and compiles `programs`, each given by the folder of its benchmark and its name.
    pub fn make(programs: &[(&str, &str)]) -> Result<Self, BoxError> {
        let dir = tempfile::Builder::new().prefix("weir-bench-").tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let bench_dir =
            Self { dir, quick: std::env::var_os("WEIR_BENCH_QUICK").is_some_and(|value| value != "0") };
        for (folder, program) in programs {
            bench_dir.compile(folder, program, &[])?;
        }
        Ok(bench_dir)
    }

    /// Compiles a program, or a library with the options for one.
    pub fn compile(&self, folder: &str, program: &str, options: &[&str]) -> Result<(), BoxError> {
        let benches = Path::new(env!("CARGO_MANIFEST_DIR"));
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let source = benches.join(folder).join("programs").join(program).with_extension("c");
        let built = Command::new(&compiler)
            .args(["-std=c11", "-D_GNU_SOURCE", "-O2"])
            .args(options)
            .arg("-o")
            .args([&self.path(program), &source])
            .status()
            .map_err(|error| format!("{compiler}: {error}"))?;
        match built.success() {
            true => Ok(()),
            false => Err(format!("{compiler} {}: {built}", source.display()).into()),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns `quick` in a trial, otherwise `whole`.
    pub fn pick<T>(&self, whole: T, quick: T) -> T {
        if self.quick { quick } else { whole }
    }
}
