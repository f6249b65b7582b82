//! Names that programs give to files, as paths from the root.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::proc;

/// A path as seen from the process's directory, which is asked for if it is not known; None where it cannot be told.
pub(super) fn absolute(pid: u32, name: &str, directory: Option<&Path>) -> Option<String> {
    if name.starts_with('/') {
        let path: PathBuf = Path::new(name).components().collect();
        return Some(path.to_string_lossy().into_owned());
    }
    let directory = match directory {
        Some(directory) => directory.to_path_buf(),
        None => proc::directory(pid).or_else(|| std::env::current_dir().ok())?,
    };
    // "." and "./x" are what they stand for; ".." is left as it is, because of symbolic links.
    let path: PathBuf = directory.join(name).components().collect();
    Some(path.to_string_lossy().into_owned())
}

/// A name that openat(2) was given with that directory.
pub(super) fn below<'a>(directory: Option<&str>, name: &'a str) -> Cow<'a, str> {
    match directory {
        Some(directory) if !name.starts_with('/') && !name.is_empty() => {
            format!("{}/{name}", directory.trim_end_matches('/')).into()
        }
        _ => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_below_the_directory_that_was_given() {
        assert_eq!(below(Some("/d"), "file"), "/d/file");
        assert_eq!(below(Some("/"), "file"), "/file");
        assert_eq!(below(Some("/d"), "/etc/file"), "/etc/file");
        assert_eq!(below(None, "file"), "file");
        assert_eq!(below(Some("/d"), ""), "");
        assert_eq!(absolute(0, "/d/./file", None).as_deref(), Some("/d/file"));
        assert_eq!(absolute(0, "./file", Some(Path::new("/d"))).as_deref(), Some("/d/file"));
    }
}
