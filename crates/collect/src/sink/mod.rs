//! The log: one file, which gets whole records only.
//!
//! Bytes that the file system does not take (ENOSPC, EIO, EROFS) stay in memory; the sink then accepts no more records, and
//! tries again at growing intervals. Nothing is written twice: the stream knows what the kernel has accepted.

mod durability;
mod finishing;
mod group_commit;
mod in_place;
mod log_file;
mod log_name;
mod new_file;
mod progress;
mod rotation;
mod syncer;
mod tail;
mod terminal;
mod unwritten;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;

pub use finishing::{Compression, Retention};
pub use rotation::RotationPolicy;
pub use tail::TornTail;

pub(crate) use group_commit::LastGroup;
pub(crate) use log_name::is_rotated_name;
pub(crate) use progress::{LogPosition, LogProgress};
pub(crate) use syncer::SyncDone;

use crate::error::bytes_are;
use crate::error::{Error, write_advice};
use crate::framing::Framing;
use crate::options::{Flush, SyncPolicy};
use group_commit::GroupCommit;
use log_file::LogFile;
use rotation::Rotator;
use syncer::Syncer;

/// The policies of the log.
#[derive(Clone, Debug)]
pub(crate) struct SinkOptions {
    /// The log; `None` is standard output.
    pub(crate) path: Option<PathBuf>,
    pub(crate) flush: Flush,
    pub(crate) sync: SyncPolicy,
    pub(crate) buffer_bytes: usize,
    pub(crate) rotation: RotationPolicy,
    pub(crate) framing: Framing,
    pub(crate) torn: TornTail,
    /// Senders wait for syncs.
    pub(crate) ack: bool,
    /// Records may be dropped while the log cannot be written.
    pub(crate) drops: bool,
}

/// Why the sink accepts no records at the moment.
#[derive(Debug)]
struct Stall {
    retry_at: Instant,
    delay: Duration,
}

/// The first and the longest interval between two attempts to write.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// The interval at which the sink checks that the path still leads to its file.
const PATH_CHECK: Duration = Duration::from_secs(1);

/// The counts of a sink since its start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SinkCounts {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) syncs: u64,
    pub(crate) rotations: u64,
    pub(crate) stalls: u64,
}

/// The log and its policies.
#[derive(Debug)]
pub(crate) struct LogSink {
    options: SinkOptions,
    file: LogFile,
    /// So many pending bytes are written at once ([`Flush::Line`]), before the end of the batch.
    write_at: usize,
    /// Bytes that were accepted, and that the stream did not take.
    rest: Vec<u8>,
    /// The last record in the log has no delimiter yet.
    open_record: bool,
    stall: Option<Stall>,
    /// When the pending bytes have to be written ([`Flush::Within`]).
    flush_at: Option<Instant>,
    /// The last write, from which [`Flush::Budget`] counts.
    budget_from: Instant,
    /// The user knows that the sources send more than the budget.
    reported_budget: bool,
    syncer: Syncer,
    group: GroupCommit,
    sync_at: Option<Instant>,
    /// Bytes since the last request to sync.
    unsynced: u64,
    /// Files that were rotated since, which the next sync covers too.
    rotated: Vec<Arc<OwnedFd>>,
    sync_failed: Option<String>,
    last_sync: Option<Instant>,
    durable_records: u64,
    rotator: Rotator,
    /// After an error of a rotation: when to try again.
    rotate_after: Option<Instant>,
    checked_path: Instant,
    /// The user knows that the log cannot be opened anew.
    reported_path: bool,
    counts: SinkCounts,
    messages: Vec<String>,
    /// The reader of standard output has ended: nothing can be written any more.
    is_closed: bool,
}

/// The sink accepts no records now.
#[derive(Debug)]
pub(crate) struct Stalled;

impl LogSink {
    /// Opens the log, and repairs its end. `wake` is made readable when a sync has ended.
    pub(crate) fn open(options: SinkOptions) -> Result<Self, Error> {
        let mut messages = Vec::new();
        let (file, open_record) = LogFile::open(&options, &mut messages)?;
        let rotator = Rotator::new(&options, &mut messages)?;
        Ok(Self {
            file,
            write_at: usize::MAX,
            rest: Vec::new(),
            open_record,
            stall: None,
            flush_at: None,
            budget_from: Instant::now(),
            reported_budget: false,
            syncer: Syncer::start()?,
            group: GroupCommit::default(),
            sync_at: None,
            unsynced: 0,
            rotated: Vec::new(),
            sync_failed: None,
            last_sync: None,
            durable_records: 0,
            rotator,
            rotate_after: None,
            checked_path: Instant::now(),
            reported_path: false,
            counts: SinkCounts::default(),
            messages,
            is_closed: false,
            options,
        })
    }

    pub(crate) fn counts(&self) -> SinkCounts {
        self.counts
    }

    /// Returns the bytes that were accepted and not written.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.file.pending() as u64 + self.rest.len() as u64
    }

    pub(crate) fn is_stalled(&self) -> bool {
        self.stall.is_some()
    }

    /// Returns whether nothing can be written any more, however long weir waits.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns the messages for the user since the last call.
    pub(crate) fn take_messages(&mut self) -> Vec<String> {
        let mut messages = std::mem::take(&mut self.messages);
        messages.append(&mut self.rotator.take_messages());
        messages
    }

    /// Returns how many bytes the current file can take before it is rotated by size.
    pub(crate) fn room(&self) -> usize {
        let Some(limit) = self.options.rotation.bytes else { return usize::MAX };
        match limit.saturating_sub(self.file.bytes()) {
            0 => usize::try_from(limit).unwrap_or(usize::MAX),
            room => usize::try_from(room).unwrap_or(usize::MAX),
        }
    }

    /// Accepts whole records, all or none of them. A terminal gets no bytes that it would obey.
    pub(crate) fn append(&mut self, bytes: &[u8], records: usize) -> Result<(), Stalled> {
        if self.stall.is_some() {
            return Err(Stalled);
        }
        if self.file.is_terminal() {
            return self.append_bytes(&terminal::escaped(bytes, self.options.framing), records);
        }
        self.append_bytes(bytes, records)
    }

    fn append_bytes(&mut self, bytes: &[u8], records: usize) -> Result<(), Stalled> {
        let delimiter = match self.options.framing {
            Framing::Delimiter(delimiter) if self.open_record => Some(delimiter),
            _ => None,
        };
        let length = bytes.len() + usize::from(delimiter.is_some());
        self.rotate_before(length);
        if self.has_budget() && self.file.pending() + length > self.options.buffer_bytes {
            self.exceed_budget(length);
        }
        if self.options.flush == Flush::None || self.file.room() < length {
            self.flush();
            if self.stall.is_some() {
                return Err(Stalled);
            }
        }
        self.open_record = false;
        if let Some(delimiter) = delimiter {
            self.put(&[delimiter]);
        }
        self.put(bytes);
        self.counts.records += records as u64;
        self.counts.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Accepts the last record of a source, which has no delimiter. It gets one when another record follows.
    pub(crate) fn append_unfinished(&mut self, bytes: &[u8]) -> Result<(), Stalled> {
        self.append(bytes, 1)?;
        self.open_record = true;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) {
        self.unsynced += bytes.len() as u64;
        if self.stall.is_some() {
            self.rest.extend_from_slice(bytes);
            return;
        }
        let (accepted, result) = self.file.write(bytes);
        self.rest.extend_from_slice(&bytes[accepted..]);
        if let Err(error) = result {
            self.set_stall(&error);
        }
    }

    /// Ends a batch of records: writes it, unless the policy allows it to wait.
    pub(crate) fn end_batch(&mut self, now: Instant) {
        match self.options.flush {
            Flush::None | Flush::Line => self.flush(),
            Flush::Full => {}
            Flush::Budget(budget) => {
                if self.pending_bytes() > 0 {
                    self.flush_at = Some(self.budget_from + budget.pause_after(self.pending_bytes()));
                }
            }
            Flush::Within(bound) => {
                if self.pending_bytes() > 0 && self.flush_at.is_none() {
                    self.flush_at = Some(now + bound);
                }
            }
        }
        self.schedule_sync(now);
    }

    /// Writes all accepted bytes, or stalls.
    pub(crate) fn flush(&mut self) {
        self.flush_at = None;
        if self.pending_bytes() == 0 {
            return;
        }
        if let Flush::Budget(_) = self.options.flush {
            self.budget_from = Instant::now();
        }
        self.check_path(false);
        match self.write_all_pending() {
            Ok(()) => {
                if self.stall.take().is_some() {
                    let outcome = if self.options.drops { "" } else { "; nothing was lost" };
                    self.messages.push(format!("{}: writing again{outcome}", self.file.name()));
                }
            }
            Err(error) => self.set_stall(&error),
        }
    }

    /// The buffer has no room for `length` bytes, so it is written at once. Says so, if the budget does not allow it yet.
    fn exceed_budget(&mut self, length: usize) {
        let Flush::Budget(budget) = self.options.flush else { return };
        let now = Instant::now();
        let early = now < self.budget_from + budget.pause_after(self.pending_bytes() + length as u64);
        self.budget_from = now;
        if early && !std::mem::replace(&mut self.reported_budget, true) {
            self.messages.push(
                "the sources send more than --write-budget allows: the buffer is full, so weir writes more than \
                 that; raise the budget"
                    .into(),
            );
        }
    }

    fn write_all_pending(&mut self) -> io::Result<()> {
        self.file.flush()?;
        while !self.rest.is_empty() {
            let (accepted, result) = self.file.write(&self.rest);
            self.rest.drain(..accepted);
            result?;
            self.file.flush()?;
        }
        Ok(())
    }

    fn set_stall(&mut self, error: &io::Error) {
        self.is_closed |= error.kind() == io::ErrorKind::BrokenPipe;
        let now = Instant::now();
        let delay = match &self.stall {
            Some(stall) => (stall.delay * 2).min(RETRY.1),
            // The reader of standard output is slow; nothing is wrong.
            _ if error.kind() == io::ErrorKind::WouldBlock => RETRY.0,
            None if self.is_closed => RETRY.0,
            None => {
                self.counts.stalls += 1;
                let advice = write_advice(error);
                self.messages.push(format!(
                    "write {}: {}: {} kept in memory, and weir tries again; {advice}",
                    self.file.name(),
                    weir_sys::errno_text(error),
                    bytes_are(self.pending_bytes()),
                ));
                RETRY.0
            }
        };
        self.stall = Some(Stall { retry_at: now + delay, delay });
    }

    /// Returns when [`LogSink::on_time`] has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let retry_at = self.stall.as_ref().map(|stall| stall.retry_at);
        [retry_at, self.flush_at, self.sync_at, self.rotate_at()].into_iter().flatten().min()
    }

    /// Writes, syncs and rotates whatever is due at this time.
    pub(crate) fn on_time(&mut self, now: Instant) {
        if self.stall.as_ref().is_some_and(|stall| stall.retry_at <= now)
            || self.flush_at.is_some_and(|at| at <= now)
        {
            self.flush();
        }
        if self.sync_at.is_some_and(|at| at <= now) {
            self.sync_at = None;
            self.request_sync();
        }
        if self.rotate_at().is_some_and(|at| at <= now) {
            self.rotate();
        }
    }

    /// Writes and syncs all accepted bytes, and waits for the finished files.
    pub(crate) fn close(mut self) -> ClosedSink {
        let result = self.write_all_pending();
        let pending_bytes = self.pending_bytes();
        let mut result = result.map_err(|error| Error::write(self.file.name(), &error, pending_bytes));
        let syncs = self.options.sync != SyncPolicy::None || matches!(self.options.flush, Flush::Budget(_));
        if result.is_ok() && syncs && self.sync_failed.is_none() {
            self.counts.syncs += 1;
            result = self.file.sync();
        }
        if let (Ok(()), Some(text)) = (&result, &self.sync_failed) {
            result = Err(Error::text(text.clone()));
        }
        self.rotator.join();
        let messages = self.take_messages();
        ClosedSink { counts: self.counts, pending_bytes, sync_error: self.sync_failed, messages, result }
    }
}

/// The result of closing the log.
#[derive(Debug)]
pub(crate) struct ClosedSink {
    pub(crate) counts: SinkCounts,
    /// Accepted bytes that could not be written.
    pub(crate) pending_bytes: u64,
    pub(crate) sync_error: Option<String>,
    pub(crate) messages: Vec<String>,
    pub(crate) result: Result<(), Error>,
}
