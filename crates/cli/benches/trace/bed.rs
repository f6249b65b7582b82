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
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/trace/programs");
        for program in ["tr2u", "tr2b", "writer"] {
            let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
            let source = sources.join(program).with_extension("c");
            let built = Command::new(&compiler)
                .args(["-std=c11", "-D_GNU_SOURCE", "-O2", "-o"])
                .args([&bed.path(program), &source])
                .status()
                .map_err(|error| format!("{compiler}: {error}"))?;
            if !built.success() {
                return Err(format!("{compiler} {}: {built}", source.display()).into());
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

    /// A file of this many bytes in lines of letters, made when it is first asked for.
    pub fn input(&self, bytes: usize) -> Result<PathBuf, Failed> {
        let path = self.path(&format!("in-{bytes}"));
        if !path.exists() {
            let line = b"abcdefghijklmnopqrstuvwxyz a banana and an aardvark\n";
            std::fs::write(&path, line.iter().copied().cycle().take(bytes).collect::<Vec<u8>>())?;
        }
        Ok(path)
    }
}
