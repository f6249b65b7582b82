//! Directories that no other user can replace, and the files in them.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Mode, OFlags, Stat, StatVfsMountFlags, chmodat, fstat, fstatvfs, mkdirat, open, openat,
    renameat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use weir_sys::user_namespace;

/// Write permission of group and others.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;
const EXECUTE_ALL: u32 = 0o111;
const READ_EXECUTE_ALL: u32 = 0o555;
/// The mode of the directories that weir makes.
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o755);

/// A directory whose path has no symbolic links, and which no other user but root can replace.
#[derive(Debug)]
pub(super) struct CheckedDirectory {
    descriptor: OwnedFd,
    pub(super) path: PathBuf,
}

impl CheckedDirectory {
    /// Opens a directory, and creates the missing directories of its path. Each directory of the path must belong to the user or root.
    pub(super) fn open(path: &Path) -> Result<CheckedDirectory, String> {
        // A link may be replaced at any time. What counts is the path that it leads to now, which is checked below.
        let existing = path.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(Path::new("/"));
        let missing = path.strip_prefix(existing).map_err(|error| error.to_string())?;
        let real = fs::canonicalize(existing).map_err(|error| error.to_string())?;
        let target = real.join(missing);
        check_path(&target)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open("/", flags, Mode::empty()).map_err(|error| error.to_string())?;
        let mut directory = CheckedDirectory { descriptor: root, path: "/".into() };
        directory.check()?;
        let mut names = target.strip_prefix("/").unwrap_or(&target).components().peekable();
        while let Some(name) = names.next() {
            // The last directory is weir's own, unless a link leads to one with another name.
            let is_own = names.peek().is_none() && path.file_name() == Some(name.as_os_str());
            directory = if is_own { directory.own_child(name)? } else { directory.child(name)? };
        }
        Ok(directory)
    }

    pub(super) fn again(&self) -> Result<CheckedDirectory, String> {
        let descriptor = self.descriptor.try_clone().map_err(|error| error.to_string())?;
        Ok(CheckedDirectory { descriptor, path: self.path.clone() })
    }

    /// Opens a directory in this one, and creates it if there is none. Fails for a symbolic link.
    fn child(&self, name: impl AsRef<Path>) -> Result<CheckedDirectory, String> {
        let directory = self.open_or_create(name.as_ref())?;
        directory.check()?;
        Ok(directory)
    }

    /// As `child` for a directory that only weir uses. Repairs its mode, which an earlier version left to root's umask.
    pub(super) fn own_child(&self, name: impl AsRef<Path>) -> Result<CheckedDirectory, String> {
        let directory = self.open_or_create(name.as_ref())?;
        directory.share()?;
        directory.check()?;
        Ok(directory)
    }

    fn open_or_create(&self, name: &Path) -> Result<CheckedDirectory, String> {
        let path = self.path.join(name);
        let failed = |errno| format!("{}: {errno}", path.display());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || openat(&self.descriptor, name, flags, Mode::empty());
        match open() {
            Ok(descriptor) => return Ok(CheckedDirectory { descriptor, path }),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let created = mkdirat(&self.descriptor, name, DIRECTORY_MODE);
        if let Err(errno) = created
            && errno != Errno::EXIST
        {
            return Err(failed(errno));
        }
        let descriptor = open().map_err(failed)?;
        let directory = CheckedDirectory { descriptor, path };
        if created.is_ok() {
            directory.share()?;
        }
        Ok(directory)
    }

    /// Opens a directory of root's, which a umask has closed, to the programs of other users.
    fn share(&self) -> Result<(), String> {
        let stat = self.stat()?;
        let is_closed = stat.st_mode & READ_EXECUTE_ALL != READ_EXECUTE_ALL;
        if geteuid().is_root() && stat.st_uid == 0 && is_closed {
            // A failure is left to `check`. The descriptor of a path has no fchmod(2).
            let _refused = chmodat(&self.descriptor, ".", DIRECTORY_MODE, AtFlags::empty());
        }
        Ok(())
    }

    /// Fails if another user can replace a directory in this one.
    fn check(&self) -> Result<(), String> {
        let (stat, path, user) = (self.stat()?, self.path.display(), geteuid().as_raw());
        if stat.st_uid != 0 && stat.st_uid != user {
            let owner = match user_namespace::is_unmapped(stat.st_uid) {
                true => "a user without a number in this user namespace",
                false => "another user",
            };
            return Err(format!("{path} belongs to {owner}"));
        }
        // A sticky directory protects the directories in it.
        if stat.st_mode & OTHERS_WRITE != 0 && stat.st_mode & STICKY == 0 {
            return Err(format!("others can write into {path}"));
        }
        if user == 0 && stat.st_mode & EXECUTE_ALL != EXECUTE_ALL {
            return Err(format!("other users' programs cannot reach {path}"));
        }
        Ok(())
    }

    /// Fails if another user can create a file in this directory, or no program can be loaded from it.
    pub(super) fn check_last(&self) -> Result<(), String> {
        let stat = self.stat()?;
        if stat.st_mode & OTHERS_WRITE != 0 {
            return Err(format!("others can write into {}", self.path.display()));
        }
        let mount = fstatvfs(&self.descriptor).map_err(|errno| errno.to_string())?;
        if mount.f_flag.contains(StatVfsMountFlags::NOEXEC) {
            return Err("it is mounted noexec".into());
        }
        Ok(())
    }

    fn stat(&self) -> Result<Stat, String> {
        fstat(&self.descriptor).map_err(|errno| format!("{}: {errno}", self.path.display()))
    }

    /// Returns whether a file exists with these bytes, belongs to the user or root, and is not writable for others.
    pub(super) fn holds(&self, name: &str, bytes: &[u8]) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = openat(&self.descriptor, name, flags, Mode::empty()) else { return false };
        let file = File::from(file);
        let user = geteuid().as_raw();
        let trusted = file.metadata().is_ok_and(|metadata| {
            metadata.is_file()
                && (metadata.uid() == user || metadata.uid() == 0)
                && metadata.mode() & OTHERS_WRITE == 0
                && metadata.len() == bytes.len() as u64
        });
        let mut found = Vec::with_capacity(bytes.len() + 1);
        trusted && file.take(bytes.len() as u64 + 1).read_to_end(&mut found).is_ok() && found == bytes
    }

    /// Writes a file under a temporary name and renames it.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let temporary = format!(".{name}.{}", std::process::id());
        let remove = || unlinkat(&self.descriptor, &temporary, AtFlags::empty()).is_ok();
        remove();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let written = (|| {
            let mut file = File::from(openat(&self.descriptor, &temporary, flags, Mode::RUSR | Mode::WUSR)?);
            file.write_all(bytes)?;
            file.set_permissions(Permissions::from_mode(0o555))?;
            renameat(&self.descriptor, &temporary, &self.descriptor, name)?;
            Ok(())
        })();
        if written.is_err() {
            remove();
        }
        written
    }
}

/// Fails if a variable cannot name a file below this directory: ld.so divides LD_PRELOAD at blanks and colons, and expands $. The
/// library's configuration is UTF-8.
fn check_path(path: &Path) -> Result<(), String> {
    let is_special = |letter: char| letter.is_whitespace() || ":$".contains(letter);
    match path.to_str().is_none_or(|text| text.contains(is_special)) {
        true => Err(
            "its path has a space or a colon, a $ or invalid UTF-8, so LD_PRELOAD, RUBYOPT or PYTHONPATH cannot name a file in it".into(),
        ),
        false => Ok(()),
    }
}
