//! Errors of a run, each with advice.

use std::io;
use std::path::{Path, PathBuf};

use weir_model::{Size, Untrusted, errno};
use weir_sys::error::errno_text;

/// An error that prevents the start or the end of a run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is invalid: exit status 2.
    #[error("{0}")]
    Usage(String),
    /// A failed system call, with the file, the call, the errno and advice.
    #[error("{path}: {call}: {error}; {advice}", path = shown(.path))]
    System {
        /// The file or directory of the call.
        path: PathBuf,
        /// Name of the call, such as `open`.
        call: String,
        /// errno with its name.
        error: String,
        /// The user's next step.
        advice: String,
        /// The same, without options that only `weir bench` has.
        general_advice: String,
    },
    /// A file system without room for the files of a run.
    #[error("{path}: not enough space: {needed} needed, {free} free (statvfs); free some space, or use another --dir", path = shown(.path))]
    NoSpace {
        /// Directory of the files.
        path: PathBuf,
        /// Space that the run needs, with a margin.
        needed: Size,
        /// Space that is free for this user.
        free: Size,
    },
    /// A failure without an errno.
    #[error("{0}")]
    Failed(String),
}

/// Returns a path on one line.
fn shown(path: &Path) -> Untrusted {
    path.to_string_lossy().into_owned().into()
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns the error of a failed call on `path`. Empty `advice` selects the errno's default.
    pub fn system(call: &str, path: &Path, error: &io::Error, advice: &str) -> Self {
        let number = raw_errno(error).unwrap_or(0);
        let (advice, general_advice) = if advice.is_empty() {
            (advice_for(number), general_advice_for(number))
        } else {
            (advice, advice)
        };
        Self::System {
            path: path.into(),
            call: call.into(),
            error: match number {
                0 => error.to_string(),
                _ => errno_text(&io::Error::from_raw_os_error(number)),
            },
            advice: advice.into(),
            general_advice: general_advice.into(),
        }
    }

    /// Returns the error of a failed call on `path`, from its errno.
    pub fn errno(call: &str, path: &Path, number: i32) -> Self {
        Self::system(call, path, &io::Error::from_raw_os_error(number), "")
    }

    /// Returns the error with advice that names no option of `weir bench`, for `weir advise`, which does not have them.
    pub(crate) fn without_options_of_bench(self) -> Self {
        match self {
            Self::System { path, call, error, general_advice, .. } => {
                Self::System { path, call, error, advice: general_advice.clone(), general_advice }
            }
            other => other,
        }
    }
}

/// Returns the errno of `error`. A library that wraps an error to add a path leaves only the kind; the errno is then
/// that of the kind.
fn raw_errno(error: &io::Error) -> Option<i32> {
    use io::ErrorKind as K;
    use rustix::io::Errno as E;
    let kinds = [
        (K::NotFound, E::NOENT),
        (K::PermissionDenied, E::ACCESS),
        (K::AlreadyExists, E::EXIST),
        (K::ReadOnlyFilesystem, E::ROFS),
        (K::StorageFull, E::NOSPC),
        (K::QuotaExceeded, E::DQUOT),
        (K::NotADirectory, E::NOTDIR),
        (K::Interrupted, E::INTR),
        (K::OutOfMemory, E::NOMEM),
    ];
    let by_kind =
        || kinds.iter().find(|(kind, _)| *kind == error.kind()).map(|(_, errno)| errno.raw_os_error());
    error.raw_os_error().or_else(by_kind)
}

fn advice_for(number: i32) -> &'static str {
    match errno::name(number).unwrap_or("") {
        "ENOSPC" | "EDQUOT" => "free some space, or use a smaller --size or another --dir",
        "EROFS" => "the file system is mounted read-only: use --dir on a writable one",
        "EACCES" | "EPERM" => "choose a directory that you may write to with --dir",
        "ENOENT" => "create the directory first, or choose another with --dir",
        "ENOTDIR" => "--dir needs a directory",
        "ENOMEM" => "use smaller --records, --buffer or --queue-depth",
        "EFBIG" => "raise the file size limit (ulimit -f) or use a smaller --size",
        "EMFILE" => "raise the limit of open files (ulimit -n)",
        "EIO" => "the device reported an error: see dmesg, and do not trust the device",
        "EINTR" => "a signal interrupted the call: run it again",
        _ => "see errno(3) and the call's man page",
    }
}

/// Returns the advice of [`advice_for`] without options that only `weir bench` has.
fn general_advice_for(number: i32) -> &'static str {
    match errno::name(number).unwrap_or("") {
        "ENOSPC" | "EDQUOT" => "free some space, or use another --dir",
        "ENOMEM" => "free some memory, or raise its limit (ulimit -v)",
        "EFBIG" => "raise the file size limit (ulimit -f)",
        _ => advice_for(number),
    }
}

/// Returns a clause that suggests the nearest of `known` to a mistyped `word`, or lists all.
pub fn suggestion<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    let nearest = known
        .clone()
        .into_iter()
        .map(|name| (strsim::jaro_winkler(word, name), name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((_, name)) => format!("did you mean '{name}'?"),
        None => format!("known: {}", known.into_iter().collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_gets_no_advice_about_options_of_bench() {
        let text = Error::errno("write", Path::new("f"), 28).without_options_of_bench().to_string();
        assert!(text.contains("ENOSPC") && text.contains("--dir") && !text.contains("--size"), "{text}");
    }

    #[test]
    fn a_limit_of_the_file_size_is_named_without_options_of_bench() {
        let number = rustix::io::Errno::FBIG.raw_os_error();
        let text = Error::errno("write", Path::new("f"), number).without_options_of_bench().to_string();
        assert_eq!(text, "f: write: EFBIG: File too large; raise the file size limit (ulimit -f)");
    }

    #[test]
    fn general_advice_names_no_option_of_bench() {
        for number in 1..134 {
            let advice = general_advice_for(number);
            let options = ["--size", "--records", "--buffer", "--queue-depth"];
            assert!(!options.iter().any(|option| advice.contains(option)), "{number}: {advice}");
        }
    }

    #[test]
    fn an_error_names_file_call_errno_and_advice() {
        let text =
            Error::errno("write", Path::new("/mnt/out"), rustix::io::Errno::NOSPC.raw_os_error()).to_string();
        assert_eq!(
            text,
            "/mnt/out: write: ENOSPC: No space left on device; free some space, or use a smaller --size or another \
             --dir"
        );
    }

    #[test]
    fn errno_is_found_inside_a_wrapped_error() {
        let wrapped = tempfile::Builder::new().tempdir_in("/nonexistent").unwrap_err();
        assert_eq!(wrapped.raw_os_error(), None, "tempfile wraps");
        let text = Error::system("mkdir", Path::new("/nonexistent"), &wrapped, "").to_string();
        assert!(text.contains("ENOENT: No such file or directory"), "{text}");
    }

    #[test]
    fn a_mistyped_word_suggests_the_nearest() {
        assert_eq!(suggestion("sycall", ["syscall", "stdio"]), "did you mean 'syscall'?");
        assert_eq!(suggestion("xyz", ["syscall", "stdio"]), "known: syscall, stdio");
    }
}
