//! A file that the user named for a result; `-` is standard output. A regular file is written whole or not at all.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use weir_bench::Error;

use crate::console;

/// The most symbolic links that the kernel follows in a path (path_resolution(7)).
const MAX_LINKS: usize = 40;

/// A file that can be written, or standard output.
pub struct OutputFile {
    path: PathBuf,
    target: OutputTarget,
}

enum OutputTarget {
    Stdout,
    /// A device, a pipe, a descriptor of this process, or a file whose folder takes no other file.
    Open(File),
    /// The path without links. A new file replaces the one that is there.
    Replaced {
        path: PathBuf,
        before: Option<Metadata>,
    },
}

impl OutputFile {
    /// Checks that `path` can be written, and keeps its content. Verbs do so before the work, so that a wrong name costs
    /// no work.
    pub fn open(path: &Path) -> Result<Self, String> {
        let target = match is_stdout(path) {
            true => {
                console::check_stdout().map_err(|error| console::stdout_error(&error))?;
                OutputTarget::Stdout
            }
            false => open_target(path).map_err(|error| error_text("open", path, &error))?,
        };
        Ok(Self { path: path.into(), target })
    }

    /// Opens the file if there is one to open.
    pub fn open_optional(path: Option<&Path>) -> Result<Option<Self>, String> {
        path.map(Self::open).transpose()
    }

    /// Replaces the content of the file.
    pub fn write(self, content: &(impl AsRef<[u8]> + ?Sized)) -> Result<(), String> {
        self.write_parts(&[content])
    }

    /// Replaces the content of the file with `parts`, one after the other.
    pub fn write_parts(self, parts: &[impl AsRef<[u8]>]) -> Result<(), String> {
        let parts = parts.iter().map(AsRef::as_ref);
        let (path, written) = match self.target {
            OutputTarget::Stdout => {
                (Path::new("standard output"), parts.into_iter().try_for_each(console::print_bytes))
            }
            OutputTarget::Open(file) => (self.path.as_path(), write_in_place(file, parts)),
            OutputTarget::Replaced { path, before } => {
                (self.path.as_path(), replace(&path, before.as_ref(), parts))
            }
        };
        written.map_err(|error| error_text("write", path, &error))
    }
}

/// Returns whether `path` stands for standard output.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Decides how a path is written, and checks that it can be.
fn open_target(path: &Path) -> io::Result<OutputTarget> {
    let Some(real) = without_links(path)? else { return open_existing(path).map(OutputTarget::Open) };
    let before = match fs::symlink_metadata(&real) {
        Ok(before) => Some(before),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    // A file that may not be written must not be replaced either.
    let existing = before.is_some().then(|| open_existing(&real)).transpose()?;
    match (create_beside(&real, before.as_ref()), existing) {
        (_, Some(file)) if !file.metadata()?.is_file() => Ok(OutputTarget::Open(file)),
        (Err(_), Some(file)) => Ok(OutputTarget::Open(file)),
        (Err(error), None) => Err(error),
        // It is made again when the result is there, so that a killed weir leaves nothing behind.
        (Ok(temporary), _) => temporary.close().map(|()| OutputTarget::Replaced { path: real, before }),
    }
}

fn open_existing(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// Follows the symbolic links at the end of a path. Returns None for a link to an open file in /proc, such as /dev/stdout:
/// its name may be another file by now. Fails for a link that belongs to another user than this one and root.
fn without_links(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let link = match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_symlink() => metadata,
            _ => return Ok(Some(path)),
        };
        let folder = parent(&path);
        if rustix::fs::statfs(folder)?.f_type as u64 == rustix::fs::PROC_SUPER_MAGIC as u64 {
            return Ok(None);
        }
        if link.uid() != 0 && link.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::from_raw_os_error(rustix::io::Errno::ACCESS.raw_os_error()));
        }
        path = folder.join(fs::read_link(&path)?);
    }
    Err(io::Error::from_raw_os_error(rustix::io::Errno::LOOP.raw_os_error()))
}

/// Returns the folder of a path.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a temporary file in the folder of `path`, with the mode and the owner of the file that it will replace.
fn create_beside(path: &Path, before: Option<&Metadata>) -> io::Result<NamedTempFile> {
    let mode = Permissions::from_mode(before.map_or(0o666, |before| before.mode() & 0o777));
    let mut builder = tempfile::Builder::new();
    let temporary = builder.prefix(".weir-").permissions(mode.clone()).tempfile_in(parent(path))?;
    if let Some(before) = before {
        let new = temporary.as_file().metadata()?;
        if (new.uid(), new.gid()) != (before.uid(), before.gid()) {
            std::os::unix::fs::fchown(temporary.as_file(), Some(before.uid()), Some(before.gid()))?;
        }
        temporary.as_file().set_permissions(mode)?;
    }
    Ok(temporary)
}

/// Writes a file beside `path` and renames it.
fn replace<'a>(
    path: &Path,
    before: Option<&Metadata>,
    mut parts: impl Iterator<Item = &'a [u8]>,
) -> io::Result<()> {
    let mut temporary = create_beside(path, before)?;
    parts.try_for_each(|part| temporary.write_all(part))?;
    temporary.persist(path).map(drop).map_err(|error| error.error)
}

/// Writes to an open file. The rest of the old content is cut off after the write: a file that is truncated to zero first
/// is flushed to the device by close(2) (ext4's auto_da_alloc), which takes milliseconds.
fn write_in_place<'a>(mut file: File, mut parts: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
    let written = parts.try_for_each(|part| file.write_all(part));
    written.and(truncate_at_position(&mut file))
}

/// Cuts off a regular file at its file offset. Does nothing to devices and pipes.
fn truncate_at_position(file: &mut File) -> io::Result<()> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(());
    }
    let end = file.stream_position()?;
    if end < metadata.len() { file.set_len(end) } else { Ok(()) }
}

fn error_text(call: &str, path: &Path, error: &io::Error) -> String {
    Error::system(call, path, error, "choose another file").to_string()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(path: &Path, text: &str) -> Result<(), String> {
        OutputFile::open(path)?.write(text)
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries =
            fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_when_it_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        let output = OutputFile::open(&path).expect("a file");
        assert!(names(folder.path()).is_empty(), "nothing is left if the result never comes");
        output.write("new").expect("written");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("a mode");
        let reader = File::open(&path).expect("a reader");
        let output = OutputFile::open(&path).expect("a file");
        assert_eq!(fs::read_to_string(&path).expect("text"), "new", "the old content stays until then");
        output.write("newer").expect("written");
        assert_eq!(io::read_to_string(reader).expect("text"), "new", "a reader sees a whole file");
        assert_eq!(fs::read_to_string(&path).expect("text"), "newer");
        assert_eq!(fs::metadata(&path).expect("metadata").mode() & 0o777, 0o640);
        assert_eq!(names(folder.path()), ["f"]);
    }

    #[test]
    fn a_failed_write_keeps_the_old_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("f");
        fs::write(&path, "old").expect("written");
        let output = OutputFile::open(&path).expect("a file");
        let parts = ["ne", "w"]
            .into_iter()
            .map(str::as_bytes)
            .inspect(|part| assert_ne!(*part, b"w", "the process ends here"));
        let OutputTarget::Replaced { path: real, before } = output.target else { panic!("a regular file") };
        let ended =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| replace(&real, before.as_ref(), parts)));
        assert!(ended.is_err());
        assert_eq!(
            (fs::read_to_string(&path).expect("text").as_str(), names(folder.path())),
            ("old", vec!["f".into()])
        );
    }

    #[test]
    fn a_link_stays_and_its_file_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("d")).expect("a folder");
        fs::write(folder.path().join("d/f"), "old").expect("written");
        symlink("d/f", folder.path().join("link")).expect("a link");
        write(&folder.path().join("link"), "new").expect("written");
        assert_eq!(fs::read_to_string(folder.path().join("d/f")).expect("text"), "new");
        assert!(folder.path().join("link").is_symlink());
    }

    #[test]
    fn special_files_are_written_directly() {
        use std::io::Read;
        use std::os::fd::AsRawFd;
        write(Path::new("/dev/null"), "text").expect("written");
        let (mut reader, writer) = io::pipe().expect("a pipe");
        write(Path::new(&format!("/dev/fd/{}", writer.as_raw_fd())), "text").expect("written");
        drop(writer);
        let mut got = String::new();
        reader.read_to_string(&mut got).expect("text");
        assert_eq!(got, "text");
        let file = tempfile::NamedTempFile::new().expect("a file");
        write(Path::new(&format!("/proc/self/fd/{}", file.as_file().as_raw_fd())), "text").expect("written");
        assert_eq!(io::read_to_string(file.as_file()).expect("text"), "text", "the same inode");
    }

    #[test]
    fn bad_paths_fail_before_the_work() {
        let folder = tempfile::tempdir().expect("a folder");
        for path in [folder.path().to_path_buf(), folder.path().join("missing/f")] {
            assert!(OutputFile::open(&path).is_err(), "{}", path.display());
        }
    }
}
