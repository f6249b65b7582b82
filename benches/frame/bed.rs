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
    /// With these programs: the folder of their benchmark, and their name.
    pub fn make(programs: &[(&str, &str)]) -> Result<Self, Failed> {
        let dir = tempfile::Builder::new().prefix("weir-bench-").tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let bed = Self { dir, quick: std::env::var_os("WEIR_BENCH_QUICK").is_some_and(|value| value != "0") };
        let benches = Path::new(env!("CARGO_MANIFEST_DIR"));
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        for (folder, program) in programs {
            let source = benches.join(folder).join("programs").join(program).with_extension("c");
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
}
