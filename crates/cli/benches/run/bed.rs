//! Where it all happens: a directory with the compiled programs and their input, gone at the end.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::Failed;

pub struct Bed {
    dir: TempDir,
    /// A trial of the benchmark itself.
    pub quick: bool,
}

impl Bed {
    pub fn make() -> Result<Self, Failed> {
        let dir = tempfile::Builder::new().prefix("weir-bench-").tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let bed = Self { dir, quick: std::env::var_os("WEIR_BENCH_QUICK").is_some_and(|value| value != "0") };
        let benches = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches");
        for (folder, program) in
            [("trace", "tr2u"), ("trace", "tr2b"), ("run", "lines"), ("run", "slow"), ("run", "putc")]
        {
            let source = benches.join(folder).join("programs").join(program).with_extension("c");
            let built = Command::new("cc")
                .args(["-std=c11", "-D_GNU_SOURCE", "-O2", "-o"])
                .args([&bed.path(program), &source])
                .status()
                .map_err(|error| format!("cc: {error}"))?;
            if !built.success() {
                return Err(format!("cc {}: {built}", source.display()).into());
            }
        }
        Ok(bed)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The quick value in a trial.
    pub fn pick<T>(&self, whole: T, quick: T) -> T {
        if self.quick { quick } else { whole }
    }

    /// One of the programs, bare or under `weir run OPTIONS --`, or under another command.
    pub fn command(&self, under: &[&str], program: &str) -> Command {
        let mut words: Vec<&str> = under.to_vec();
        if words.first() == Some(&"weir") {
            words.splice(0..1, [env!("CARGO_BIN_EXE_weir"), "run", "--quiet"]);
            words.push("--");
        }
        let program = self.path(program);
        match words.split_first() {
            None => Command::new(program),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
        }
    }
}
