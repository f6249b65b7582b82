//! Counts the files, bytes and calls of the threads of a copy.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::options::CopyMethod;

/// The calls that move bytes, find holes or make files durable, by name.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)]
pub struct CopyTally {
    /// Number of calls by name.
    pub calls: BTreeMap<&'static str, u64>,
    /// Files and their bytes of data, without holes, by the method that moved the last of them.
    pub methods: BTreeMap<CopyMethod, (u64, u64)>,
    /// Regular files whose content was copied.
    pub files: u64,
    /// Bytes of data that were copied.
    pub copied_bytes: u64,
    /// Bytes of an earlier run that `--resume` kept.
    pub kept_bytes: u64,
    /// Bytes that source and target share.
    pub shared_bytes: u64,
    /// Bytes of holes that were kept or made.
    pub hole_bytes: u64,
    pub directories: u64,
    pub symbolic_links: u64,
    pub hard_links: u64,
    /// FIFOs, sockets and device nodes.
    pub special_files: u64,
    /// Existing targets that were kept.
    pub skipped: u64,
    /// Attributes that the target's file system cannot keep.
    pub dropped_attributes: u64,
    pub errors: u64,
    pub verified_bytes: u64,
    /// Time in fsync(2), fdatasync(2) and syncfs(2), added over the threads.
    pub sync_time: Duration,
    /// Files that are durable, by fsync(2), fdatasync(2) or syncfs(2).
    pub synced_files: u64,
    /// Files that were synced on a file system that a power cut empties.
    pub volatile_files: u64,
    /// The reader of standard output has closed it.
    pub reader_left: bool,
    /// Pages of targets that were still in the page cache after `--cache drop`, in bytes; None where cachestat(2) is absent.
    pub cached_bytes: Option<u64>,
}

impl CopyTally {
    pub(crate) fn call(&mut self, name: &'static str) {
        *self.calls.entry(name).or_default() += 1;
    }

    /// Makes and counts a call that makes something durable, and adds its time.
    pub(crate) fn sync<T>(&mut self, name: &'static str, call: impl FnOnce() -> T) -> T {
        self.call(name);
        let started = Instant::now();
        let result = call();
        self.sync_time += started.elapsed();
        result
    }

    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &CopyTally) {
        for (name, number) in &other.calls {
            *self.calls.entry(name).or_default() += number;
        }
        for (method, (files, bytes)) in &other.methods {
            let sum = self.methods.entry(*method).or_default();
            *sum = (sum.0 + files, sum.1 + bytes);
        }
        let pairs = [
            (&mut self.files, other.files),
            (&mut self.copied_bytes, other.copied_bytes),
            (&mut self.kept_bytes, other.kept_bytes),
            (&mut self.shared_bytes, other.shared_bytes),
            (&mut self.hole_bytes, other.hole_bytes),
            (&mut self.directories, other.directories),
            (&mut self.symbolic_links, other.symbolic_links),
            (&mut self.hard_links, other.hard_links),
            (&mut self.special_files, other.special_files),
            (&mut self.skipped, other.skipped),
            (&mut self.dropped_attributes, other.dropped_attributes),
            (&mut self.errors, other.errors),
            (&mut self.verified_bytes, other.verified_bytes),
            (&mut self.synced_files, other.synced_files),
            (&mut self.volatile_files, other.volatile_files),
        ];
        for (sum, number) in pairs {
            *sum += number;
        }
        self.sync_time += other.sync_time;
        self.reader_left |= other.reader_left;
        if let Some(bytes) = other.cached_bytes {
            *self.cached_bytes.get_or_insert(0) += bytes;
        }
    }
}
