//! The marker of an incomplete tree of `--resume`: a file beside the new directory. The same command would later copy the source into
//! that directory, because it exists by then; the marker tells an unfinished tree from a directory of the user.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

const SCHEMA: &str = "weir-copy-tree/1";

/// The most bytes of a marker that are read. Its own content is shorter.
const MAX_BYTES: u64 = 4096;

/// The content of a marker. A device number can change between mounts, so that it is not in it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    schema: String,
    /// The inode of the source directory.
    inode: u64,
}

/// The marker of one target.
#[derive(Debug)]
pub struct TreeMarker {
    path: PathBuf,
    content: Content,
}

impl TreeMarker {
    /// Returns the marker for the tree `source` at `target`. None if the source is no directory, or the target has no name.
    #[must_use]
    pub fn of(source: &Path, target: &Path) -> Option<Self> {
        let source = fs::metadata(source).ok().filter(fs::Metadata::is_dir)?;
        let hash = Sha256::digest(target.file_name()?.as_encoded_bytes());
        let hex: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let path = target.with_file_name(format!(".weir-resume-{hex}.tree"));
        Some(Self { path, content: Content { schema: SCHEMA.into(), inode: source.ino() } })
    }

    /// Returns the path of the marker.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the marker is there and is of this source.
    #[must_use]
    pub fn is_there(&self) -> bool {
        let mut text = String::new();
        let read = open_own(&self.path, OpenOptions::new().read(true))
            .and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text));
        read.is_ok() && serde_json::from_str::<Content>(&text).is_ok_and(|content| content == self.content)
    }

    /// Makes the marker durable, before anything of the tree exists.
    ///
    /// # Errors
    /// The directory of the target cannot be written, or the file there is not of this user.
    pub fn make(&self) -> io::Result<()> {
        let mut file = open_own(&self.path, OpenOptions::new().write(true).create(true).mode(0o600))?;
        file.set_len(0)?;
        file.write_all(serde_json::to_string(&self.content).expect("a string and a number").as_bytes())?;
        file.sync_all()?;
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
    }

    /// Removes the marker, if it is of this source.
    pub fn remove(&self) {
        if self.is_there() {
            let _removed = fs::remove_file(&self.path);
        }
    }
}

/// Opens a regular file of this user with one name: another user could have put a link there.
fn open_own(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = options.custom_flags(flags.bits() as i32).open(path)?;
    let found = file.metadata()?;
    let is_own = found.is_file() && found.uid() == rustix::process::geteuid().as_raw() && found.nlink() == 1;
    if is_own { Ok(file) } else { Err(io::ErrorKind::AlreadyExists.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_of_one_source_and_of_this_user() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        for name in ["s", "other"] {
            fs::create_dir(path(name)).expect("a directory");
        }
        fs::write(path("file"), "x").expect("written");
        assert!(TreeMarker::of(&path("file"), &path("t")).is_none(), "no tree");
        let marker = TreeMarker::of(&path("s"), &path("t")).expect("a tree");
        assert!(!marker.is_there());
        marker.make().expect("made");
        assert!(marker.is_there());
        let other = TreeMarker::of(&path("other"), &path("t")).expect("a tree");
        assert!(!other.is_there(), "it is of another source");
        other.remove();
        assert!(marker.is_there(), "another source leaves it");
        marker.remove();
        assert!(!marker.path().exists());
        std::os::unix::fs::symlink(path("file"), marker.path()).expect("a link");
        assert!(marker.make().is_err() && !marker.is_there());
        assert_eq!(fs::read_to_string(path("file")).expect("read"), "x", "no link is followed");
    }
}
