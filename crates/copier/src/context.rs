//! The state that all threads of a copy share, and that of each thread.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::fs::Mode;

use crate::buffer::AlignedBuffer;
use crate::control::CopyControl;
use crate::engine::ContentResult;
use crate::error::CopyError;
use crate::file_stat::FileStat;
use crate::links::LinkMap;
use crate::options::CopyOptions;
use crate::sync_ledger::SyncLedger;
use crate::tally::CopyTally;

/// Size of a thread's buffer at the start: small files are read with one call.
const START_BUFFER_BYTES: usize = 64 << 10;

/// Receives what a copy reports while it runs. Calls come from all threads.
pub trait CopyReporter: Sync {
    /// Reports a file that was copied, or a link or directory that was made. Called if `verbose` is set.
    fn copied(&self, source: &Path, target: &Path, backup: Option<&Path>);
    /// Reports how the content of a regular file was copied.
    fn content(&self, source: &Path, target: &Path, result: &ContentResult);
    /// Reports a fact that makes no difference to the copy.
    fn note(&self, text: &str);
    /// Reports a condition that is no error, but that the user should know.
    fn warning(&self, text: &str);
    /// Reports a file that could not be copied; the copy continues with the next one.
    fn error(&self, error: &CopyError);
    /// Asks the user. Returns true for yes.
    fn ask(&self, question: &str) -> bool;
    /// Returns whether `content` is wanted for every regular file; if not, it is called for fallbacks only.
    fn wants_content(&self) -> bool;
}

/// The user, group and file mode mask of this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    pub uid: u32,
    pub gid: u32,
    /// The mask that applies to files whose mode is not preserved.
    pub umask: u32,
}

/// State that the threads of one copy share.
pub(crate) struct Context<'a> {
    pub options: &'a CopyOptions,
    pub control: &'a CopyControl,
    pub reporter: &'a dyn CopyReporter,
    pub identity: Identity,
    pub links: LinkMap,
    pub ledger: SyncLedger,
    /// Syncs of files may be deferred to the end of the run.
    pub defers_syncs: bool,
    /// The destination names the copy itself, because it was no directory at the start. An incomplete tree makes it one, so
    /// that the next run continues it only with -T.
    pub names_root: bool,
    /// Device and inode of the targets made so far; None for a single source, which cannot meet its own target.
    created: Option<Mutex<HashSet<(u64, u64)>>>,
    /// st_dev plus 1 of source and target when FICLONE was last refused; 0 before.
    last_refusal: [AtomicU64; 2],
    /// How many temporary names were made.
    temporary_count: AtomicU64,
}

/// The buffer and the counts of one thread.
pub(crate) struct Worker {
    pub buffer: AlignedBuffer,
    pub tally: CopyTally,
}

impl Worker {
    pub fn new() -> Self {
        Self { buffer: AlignedBuffer::new(START_BUFFER_BYTES), tally: CopyTally::default() }
    }
}

impl<'a> Context<'a> {
    pub fn new(
        options: &'a CopyOptions,
        control: &'a CopyControl,
        reporter: &'a dyn CopyReporter,
        remembers_created: bool,
    ) -> Self {
        // The mask can be read only by setting it. No other thread exists yet that could create files. If modes are
        // preserved the mask stays 0, and every file is created with its exact mode.
        let mask = rustix::process::umask(Mode::empty());
        if !options.preserved.mode {
            rustix::process::umask(mask);
        }
        Self {
            options,
            control,
            reporter,
            identity: Identity {
                uid: rustix::process::geteuid().as_raw(),
                gid: rustix::process::getegid().as_raw(),
                umask: mask.as_raw_mode(),
            },
            links: LinkMap::default(),
            ledger: SyncLedger::default(),
            defers_syncs: options.recursive || remembers_created || options.parents,
            names_root: false,
            created: remembers_created.then(Mutex::default),
            last_refusal: [AtomicU64::new(0), AtomicU64::new(0)],
            temporary_count: AtomicU64::new(0),
        }
    }

    /// Reports and counts an error. A stop is none.
    pub fn report_error(&self, worker: &mut Worker, error: &CopyError) {
        if !matches!(error, CopyError::Interrupted) {
            worker.tally.errors += 1;
            self.reporter.error(error);
        }
    }

    /// Remembers a target that this run has made.
    pub fn note_created(&self, stat: impl FnOnce() -> io::Result<FileStat>) {
        if let Some(created) = &self.created
            && let Ok(stat) = stat()
        {
            created.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(stat.id());
        }
    }

    /// Returns whether this run has made the file.
    pub fn has_created(&self, stat: &FileStat) -> bool {
        self.created.as_ref().is_some_and(|created| {
            created.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).contains(&stat.id())
        })
    }

    /// Returns false if these devices were the last that refused to share blocks. A target whose device is unknown may share.
    pub fn may_share(&self, source_dev: u64, target_dev: Option<u64>) -> bool {
        target_dev.is_none_or(|target_dev| {
            self.last_refusal[0].load(Relaxed) != source_dev + 1
                || self.last_refusal[1].load(Relaxed) != target_dev + 1
        })
    }

    /// Remembers that the devices do not share blocks, if that of the target is known.
    pub fn note_refusal(&self, source_dev: u64, target_dev: Option<u64>) {
        if let Some(target_dev) = target_dev {
            self.last_refusal[0].store(source_dev + 1, Relaxed);
            self.last_refusal[1].store(target_dev + 1, Relaxed);
        }
    }

    /// Returns a name for a temporary file that no other process uses.
    pub fn temporary_name(&self) -> std::ffi::CString {
        let number = self.temporary_count.fetch_add(1, Relaxed);
        let time = weir_sys::clock::now_ns();
        let name = format!(".weir-copy-{}-{time:x}-{number}", std::process::id());
        std::ffi::CString::new(name).expect("no NUL byte")
    }
}

/// Restores the umask: files that the caller makes after the copy must not be writable by all.
impl Drop for Context<'_> {
    fn drop(&mut self) {
        rustix::process::umask(Mode::from_raw_mode(self.identity.umask));
    }
}
