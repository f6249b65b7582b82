//! The options of a copy.

use std::ffi::OsString;

/// A way to move the bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CopyMethod {
    /// Chosen for each file.
    Auto,
    /// ioctl FICLONE: both files share their blocks.
    Reflink,
    /// copy_file_range(2)
    CopyFileRange,
    /// splice(2) through a pipe
    Splice,
    /// sendfile(2)
    Sendfile,
    /// io_uring(7), several chunks at a time
    IoUring,
    /// read(2) and write(2)
    ReadWrite,
    /// mmap(2) of the source, write(2) of the mapping
    Mmap,
    /// read(2) and write(2) with O_DIRECT
    Direct,
    /// fread(3) and fwrite(3) of the C library
    Stdio,
}

impl CopyMethod {
    /// Every method with its name on the command line.
    pub const ALL: [(CopyMethod, &str); 10] = [
        (CopyMethod::Auto, "auto"),
        (CopyMethod::Reflink, "reflink"),
        (CopyMethod::CopyFileRange, "copy_file_range"),
        (CopyMethod::Splice, "splice"),
        (CopyMethod::Sendfile, "sendfile"),
        (CopyMethod::IoUring, "io_uring"),
        (CopyMethod::ReadWrite, "readwrite"),
        (CopyMethod::Mmap, "mmap"),
        (CopyMethod::Direct, "direct"),
        (CopyMethod::Stdio, "stdio"),
    ];

    /// Returns the method's name on the command line.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(method, _)| *method == self).map_or("auto", |(_, name)| name)
    }
}

/// A choice between always, never, and as the file system permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum Tristate {
    #[default]
    Auto,
    Always,
    Never,
}

/// How the holes of a source are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HoleSearch {
    /// lseek(2) with SEEK_DATA and SEEK_HOLE.
    #[default]
    Seek,
    /// Every byte is read; blocks of NUL bytes become holes.
    Scan,
}

/// The symbolic links of the source that are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowLinks {
    /// `-P`: none.
    Never,
    /// `-H`: only those that are operands.
    Operands,
    /// `-L`: all.
    Always,
}

/// The attributes that the copy takes from the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Preserved {
    pub mode: bool,
    /// `--no-preserve=mode`: new files get the mode that an ordinary program gives, not that of the source.
    pub default_mode: bool,
    pub owner: bool,
    pub times: bool,
    pub links: bool,
    pub xattr: bool,
    /// Extended attributes were named by the user: a target that cannot keep them is an error.
    pub xattr_required: bool,
    pub context: bool,
}

impl Preserved {
    /// Everything, as `cp -a` does; attributes that a target cannot keep are counted.
    pub const ALL: Preserved = Preserved {
        mode: true,
        default_mode: false,
        owner: true,
        times: true,
        links: true,
        xattr: true,
        xattr_required: false,
        context: true,
    };
}

/// The treatment of an existing target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    /// It is truncated and overwritten.
    #[default]
    Overwrite,
    /// `-n`: it is kept.
    Skip,
    /// `--update=none-fail`: it is kept, which is an error.
    Fail,
    /// `-u`: it is overwritten if it is older than the source.
    Older,
}

/// The names of backups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupNames {
    /// `NAME~`, or another suffix.
    Simple,
    /// `NAME.~1~`, `NAME.~2~` …
    Numbered,
    /// Numbered if there are numbered backups, otherwise simple.
    Existing,
}

/// The result of a copy: bytes, or a link to the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum TargetKind {
    #[default]
    Copy,
    HardLink,
    SymbolicLink,
    /// `--attributes-only`: an empty file, or the content that the target has.
    Attributes,
}

/// The durability of a copy when weir ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum CopySync {
    /// The kernel writes the bytes later.
    #[default]
    None,
    /// The bytes of each file are durable when weir ends.
    Data,
    /// Bytes, attributes and names are durable when weir ends.
    Full,
}

/// Everything that an invocation of `weir copy` may choose.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct CopyOptions {
    pub method: CopyMethod,
    pub buffer_bytes: Option<usize>,
    pub reflink: Tristate,
    pub sparse: Tristate,
    pub holes: HoleSearch,
    pub recursive: bool,
    /// `--copy-contents`: the content of special files is copied, not the file.
    pub copy_contents: bool,
    pub follow: FollowLinks,
    pub preserved: Preserved,
    pub existing: Existing,
    /// A question is asked before a target is overwritten.
    pub interactive: bool,
    pub force: bool,
    pub remove_destination: bool,
    pub backup: Option<BackupNames>,
    pub backup_suffix: OsString,
    pub kind: TargetKind,
    pub one_file_system: bool,
    pub parents: bool,
    pub strip_trailing_slashes: bool,
    /// A symbolic link in the target's tree may name a directory.
    pub keep_directory_symlink: bool,
    /// Block devices and unusual character devices may be read and written.
    pub devices: bool,
    pub sync: CopySync,
    pub atomic: bool,
    /// An incomplete copy stays, and a later run continues it. Only with `atomic`.
    pub resume: bool,
    pub verify: bool,
    /// `--cache drop`: pages that the copy brought into the page cache are dropped after each chunk.
    pub drop_cache: bool,
    /// Bytes per second, at most.
    pub limit: Option<u64>,
    /// Threads of a tree; 0 for one per processor, at most 8.
    pub threads: usize,
    /// Each copied file is reported, as `cp -v` does.
    pub verbose: bool,
}

impl Preserved {
    /// Returns the permissions with which a new file begins, less the mask: those of the source, or `ordinary` ones.
    pub fn begin_mode(&self, source: u32, ordinary: u32) -> u32 {
        if self.default_mode { ordinary } else { source }
    }
}

impl CopyOptions {
    /// Returns the durability at the end: [`CopySync::Full`] with `--atomic`, which renames complete files.
    pub fn sync_level(&self) -> CopySync {
        if self.atomic { CopySync::Full } else { self.sync }
    }

    /// Returns whether a copy may share the blocks of its source, which copies holes as they are and leaves the page cache alone.
    pub(crate) fn permits_sharing(&self) -> bool {
        matches!(self.method, CopyMethod::Auto | CopyMethod::Reflink)
            && self.reflink != Tristate::Never
            && self.sparse == Tristate::Auto
            && self.holes == HoleSearch::Seek
            && !self.drop_cache
    }

    /// Returns whether the content of each file is synced: by `--sync`, or before `--verify` reads it back.
    pub(crate) fn syncs_content(&self) -> bool {
        self.sync_level() != CopySync::None || self.verify && self.kind != TargetKind::Attributes
    }
}

impl Default for CopyOptions {
    fn default() -> Self {
        Self {
            method: CopyMethod::Auto,
            buffer_bytes: None,
            reflink: Tristate::Auto,
            sparse: Tristate::Auto,
            holes: HoleSearch::Seek,
            recursive: false,
            copy_contents: false,
            follow: FollowLinks::Always,
            preserved: Preserved::default(),
            existing: Existing::Overwrite,
            interactive: false,
            force: false,
            remove_destination: false,
            backup: None,
            backup_suffix: "~".into(),
            kind: TargetKind::Copy,
            one_file_system: false,
            parents: false,
            strip_trailing_slashes: false,
            keep_directory_symlink: false,
            devices: false,
            sync: CopySync::None,
            atomic: false,
            resume: false,
            verify: false,
            drop_cache: false,
            limit: None,
            threads: 0,
            verbose: false,
        }
    }
}
