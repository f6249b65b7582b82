//! The last result of each experiment on this machine, one small file each in the user's state directory.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use weir_model::lab::{LabVerdict, PreviousRun};

/// Returns the entry of an experiment that ended now.
pub fn run_now(verdict: &LabVerdict, quick: bool) -> PreviousRun {
    PreviousRun { at_s: now_s(), quick, agrees: verdict.agrees() }
}

/// Returns the seconds since 1970; 0 if the clock is before that.
pub fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns the directory of the results: `weir/lab` in `$XDG_STATE_HOME`, or in `~/.local/state`. None if the environment
/// has neither XDG_STATE_HOME nor HOME.
pub fn directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // The XDG specification ignores relative paths.
    let of = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = of("XDG_STATE_HOME").or_else(|| Some(of("HOME")?.join(".local/state")))?;
    Some(state.join("weir/lab"))
}

/// Stores a result. A failure leaves the previous result in place.
pub fn store(directory: &Path, name: &str, result: &PreviousRun) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    serde_json::to_writer(&mut file, result)?;
    file.write_all(b"\n")?;
    file.persist(path(directory, name))?;
    Ok(())
}

/// Returns the last result of an experiment; None if the file is missing or invalid.
pub fn last(directory: &Path, name: &str) -> Option<PreviousRun> {
    serde_json::from_slice(&fs::read(path(directory, name)).ok()?).ok()
}

fn path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_result_is_the_last_one() {
        let home = tempfile::tempdir().expect("a directory");
        let directory = home.path().join("a/b");
        assert_eq!(last(&directory, "tail"), None);
        for quick in [false, true] {
            let result = run_now(&LabVerdict::Differs("why".into()), quick);
            store(&directory, "tail", &result).expect("it is stored");
            assert_eq!(last(&directory, "tail"), Some(result));
        }
        assert_eq!(fs::read_dir(&directory).expect("it exists").count(), 1, "one file per experiment");
        fs::write(path(&directory, "tail"), "half a fi").expect("written");
        assert_eq!(last(&directory, "tail"), None);
    }

    #[test]
    fn the_state_directory_is_the_users() {
        let with = |state: &str, home: &str| {
            let of = |value: &str| (!value.is_empty()).then(|| value.into());
            directory(|name| if name == "HOME" { of(home) } else { of(state) })
        };
        assert_eq!(with("/s", "/h"), Some("/s/weir/lab".into()));
        assert_eq!(with("", "/h"), Some("/h/.local/state/weir/lab".into()));
        assert_eq!(with("not/absolute", "/h"), Some("/h/.local/state/weir/lab".into()));
        assert_eq!(with("", ""), None);
    }
}
