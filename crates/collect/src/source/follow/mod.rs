//! Files that grow. A file that is renamed is read to its end before the one that takes its name; a truncated file is
//! read from its start; positions are kept across restarts.

mod file_intake;
mod own_files;
pub(crate) mod position;
mod watch;

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fd::BorrowedFd;

use super::{Source, SourceProgress};
use crate::collector::{Collector, Received};
use crate::error::Error;
use crate::intake::Intake;
use crate::options::{LogOptions, Overflow, SyncPolicy};
use file_intake::FileIntake;
use own_files::OwnFiles;
use position::{FollowedFile, Position, Positions};
use watch::Watch;

/// How long a renamed file is read on after its last byte: its writer may not have opened the new one yet.
const GRACE: Duration = Duration::from_secs(60);

/// The interval between two reads of renamed files, whose directory may not be watched, and between two saves of positions.
const INTERVAL: Duration = Duration::from_secs(1);

/// The first save comes soon after the first read, when the records and the messages of that read are written.
const FIRST_SAVE: Duration = Duration::from_millis(10);

/// The files that a pattern names.
struct Follow {
    pattern: PathBuf,
    watch: Watch,
    own_files: OwnFiles,
    files: Vec<FileIntake>,
    positions: Option<Positions>,
    /// Something was read since the positions were saved.
    changed: bool,
    save_at: Option<Instant>,
    /// A save was tried. The first one comes soon after the first read, so that even a very short run makes progress.
    has_tried_save: bool,
    /// When the log became durable up to the snapshot.
    durable_at: Option<Instant>,
    /// Positions that are saved when the log is durable up to them.
    snapshot: Option<Snapshot>,
    has_more: bool,
    /// When to read the renamed files again.
    look_at: Option<Instant>,
    ended: bool,
}

/// The positions when the log had this many records.
struct Snapshot {
    records: u64,
    positions: Vec<Position>,
}

pub(super) fn open(pattern: &str, options: &LogOptions) -> Result<Box<dyn Source>, Error> {
    let path = std::path::absolute(pattern).unwrap_or_else(|_| pattern.into());
    let own_files = OwnFiles::of(options, &path);
    let watch = Watch::open(&path)?;
    if watch.is_one_name() && own_files.contain(&path) {
        return Err(Error::text(format!(
            "--follow {}: this is the log itself; write to another file (-o)",
            crate::error::shown(pattern)
        )));
    }
    let positions = options.state.as_deref().map(Positions::load).transpose()?;
    let mut follow = Follow {
        pattern: path,
        watch,
        own_files,
        files: Vec::new(),
        positions,
        changed: false,
        save_at: None,
        has_tried_save: false,
        durable_at: None,
        snapshot: None,
        has_more: true,
        look_at: None,
        ended: false,
    };
    follow.resume_rotated(options);
    Ok(Box::new(follow))
}

impl Follow {
    /// Opens the files that were renamed while no collector ran. Their remaining bytes come before those of the new files.
    fn resume_rotated(&mut self, options: &LogOptions) {
        let Some(positions) = &mut self.positions else { return };
        for (name, followed) in positions.find_renamed(&self.pattern) {
            self.files.push(FileIntake {
                intake: Intake::new(name, None, options),
                followed,
                renamed: true,
                last_growth: Instant::now(),
                at_end: false,
                loss: None,
            });
        }
    }

    /// Compares the open files with the files that the paths lead to.
    fn scan(&mut self, collector: &mut Collector) {
        // The paths are opened before the events are read: every rename before an opening has its event then, so that renamed
        // files come before the file that has their name now.
        let paths = self.watch.matching_paths();
        let is_new = |path: &PathBuf| !self.leads_to_known(path) && !self.own_files.contain(path);
        let new_paths = paths.into_iter().filter(is_new);
        let opened: Vec<_> = new_paths.map(|path| (FollowedFile::open(&path, &path), path)).collect();
        let (renamed, overflowed) = self.watch.take_renamed();
        for file in renamed {
            // It had the followed name for so short a time that it was not opened.
            if !self.is_known(&file) && !self.own_files.had_path(file.path()) {
                self.push(file, true, None, collector);
            }
        }
        if overflowed {
            let pattern = crate::error::shown(&self.pattern);
            collector.messages.push(format!(
                "{pattern}: inotify lost events; a file that was rotated twice at once may be missed"
            ));
        }
        for (file, path) in opened {
            self.adopt(file, &path, collector);
        }
        for file in &mut self.files {
            file.renamed = !file.followed.is_at_path();
        }
        self.has_more = true;
    }

    /// Returns whether the path leads to an open file, which need not be opened again.
    fn leads_to_known(&self, path: &Path) -> bool {
        own_files::identity(path)
            .is_some_and(|identity| self.files.iter().any(|file| file.followed.identity() == identity))
    }

    fn is_known(&self, followed: &FollowedFile) -> bool {
        self.files.iter().any(|file| file.followed.identity() == followed.identity())
    }

    /// Adds a file that a path leads to, if it is new.
    fn adopt(&mut self, opened: std::io::Result<FollowedFile>, path: &Path, collector: &mut Collector) {
        let mut followed = match opened {
            Ok(followed) => followed,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => {
                let text = Error::call("open", &crate::error::shown(path), &error, "make the file readable")
                    .to_string();
                return self.watch.report_once(path, text, &mut collector.messages);
            }
        };
        if self.is_known(&followed) {
            return;
        }
        let change = self.positions.as_mut().and_then(|positions| positions.resume(&mut followed));
        let name = followed.name();
        let loss = change.map(|change| {
            format!("weir: {name} {change}; it is read from its start; records between may be lost")
        });
        self.push(followed, false, loss, collector);
    }

    fn push(&mut self, followed: FollowedFile, renamed: bool, loss: Option<String>, collector: &Collector) {
        let name = followed.name();
        let mut intake = Intake::new(name.clone(), None, &collector.options);
        if let Some(before) = self.files.iter().rev().find(|file| file.intake.name == name) {
            intake.continue_after(&before.intake);
        }
        let last_growth = Instant::now();
        self.files.push(FileIntake { followed, intake, renamed, last_growth, at_end: false, loss });
    }

    /// Reads once from each file. A file waits until the files of its path before it are at their end.
    fn read_files(&mut self, collector: &mut Collector) {
        self.has_more = false;
        // The records are in their files already: they need no second one.
        if collector.sink.is_stalled() && collector.options.overflow == Overflow::Spill {
            self.look_at = self.look_at.map(|_| Instant::now() + INTERVAL);
            return;
        }
        for index in 0..self.files.len() {
            let name = self.files[index].intake.name.clone();
            let waits = self.files[..index].iter().any(|before| before.intake.name == name && !before.at_end);
            if waits {
                self.has_more = true;
                continue;
            }
            let file = &mut self.files[index];
            if !file.report_loss(collector) || !file.check_truncation(collector) {
                continue;
            }
            let followed = &mut file.followed;
            let received = collector.receive(&mut file.intake, |buffer| followed.read(buffer));
            let grew = matches!(received, Received::Bytes | Received::Full);
            file.at_end = !grew;
            if grew {
                file.last_growth = Instant::now();
                self.has_more = true;
                self.changed = true;
            }
        }
        self.remove_finished(collector);
        self.look_at = self.files.iter().any(|file| file.renamed).then(|| Instant::now() + INTERVAL);
        self.schedule_save();
    }

    fn schedule_save(&mut self) {
        if self.changed && self.save_at.is_none() {
            let wait = if self.has_tried_save { INTERVAL } else { FIRST_SAVE };
            self.save_at = Some(Instant::now() + wait);
        }
    }

    /// Writes the records of files that have not grown for a while.
    fn end_idle(&mut self, now: Instant, collector: &mut Collector) {
        for file in &mut self.files {
            self.changed |= file.end_idle(now, collector);
        }
        self.schedule_save();
    }

    /// Ends the renamed files that have not grown for a while, or whose name has a successor that ends the wait.
    fn remove_finished(&mut self, collector: &mut Collector) {
        let ended = self.ended;
        self.files.retain_mut(|file| {
            let is_over = file.renamed && file.at_end && (ended || file.last_growth.elapsed() >= GRACE);
            if is_over && collector.end(&mut file.intake) {
                collector.add_ended(file.intake.counts);
                return false;
            }
            true
        });
    }

    /// Takes a snapshot of the positions when the log has all records before them, and saves it if nothing is synced or the
    /// device has them too.
    fn save(&mut self, collector: &mut Collector) {
        self.save_at = None;
        let is_first = !std::mem::replace(&mut self.has_tried_save, true);
        let Some(positions) = &mut self.positions else { return };
        let sink = &mut collector.sink;
        sink.flush();
        let is_synced = collector.options.sync != SyncPolicy::None;
        if self.snapshot.is_none() && sink.pending_bytes() == 0 {
            let files = self.files.iter().map(|file| (&file.followed, file.intake.unaccepted_bytes() as u64));
            self.snapshot =
                Some(Snapshot { records: sink.counts().records, positions: positions.snapshot(files) });
            self.changed = false;
        }
        // The first save waits for the sync of the policy.
        if is_synced && !is_first {
            sink.request_sync();
        }
        self.save_snapshot(collector);
        if self.changed || self.snapshot.is_some() {
            self.save_at = Some(Instant::now() + INTERVAL);
        }
    }

    /// Saves the snapshot if the log has the records before it, on the device if it is synced.
    fn save_snapshot(&mut self, collector: &mut Collector) {
        self.durable_at = None;
        let Some(positions) = &mut self.positions else { return };
        let (is_synced, durable) =
            (collector.options.sync != SyncPolicy::None, collector.sink.durable_records());
        if let Some(snapshot) = self.snapshot.take_if(|snapshot| !is_synced || durable >= snapshot.records)
            && let Err(error) = positions.save(snapshot.positions)
        {
            collector.messages.push(error.to_string());
        }
    }
}

impl Source for Follow {
    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.watch.as_fd())
    }

    fn is_always_ready(&self) -> bool {
        self.has_more
    }

    fn read(&mut self, collector: &mut Collector, _added: &mut Vec<Box<dyn Source>>) -> SourceProgress {
        self.scan(collector);
        self.read_files(collector);
        SourceProgress::Open
    }

    fn resume(&mut self, collector: &mut Collector) -> SourceProgress {
        for file in &mut self.files {
            collector.resume(&mut file.intake);
        }
        self.has_more = true;
        SourceProgress::Open
    }

    fn deadline(&self, options: &LogOptions) -> Option<Instant> {
        let idle = self.files.iter().filter_map(|file| file.intake.idle_deadline(options)).min();
        [self.durable_at, self.save_at, self.look_at, idle].into_iter().flatten().min()
    }

    fn on_time(&mut self, now: Instant, collector: &mut Collector, _added: &mut Vec<Box<dyn Source>>) {
        if self.durable_at.is_some() {
            self.save_snapshot(collector);
        }
        self.read_files(collector);
        self.end_idle(now, collector);
        if self.save_at.is_some_and(|at| at <= now) {
            self.save(collector);
        }
    }

    fn on_synced(&mut self, records: u64) {
        let is_durable = self.snapshot.as_ref().is_some_and(|snapshot| records >= snapshot.records);
        self.durable_at = is_durable.then(Instant::now);
    }

    fn begin_end(&mut self) {
        self.has_more = true;
    }

    fn finish(&mut self, collector: &mut Collector) -> SourceProgress {
        self.ended = true;
        // The next run reads the bytes behind the last record again, if positions are kept.
        if self.positions.is_some() {
            if collector.options.sync != SyncPolicy::None {
                collector.sink.sync_now();
            }
            self.snapshot = None;
            self.save(collector);
        } else {
            for file in &mut self.files {
                collector.end(&mut file.intake);
            }
        }
        for file in self.files.drain(..) {
            collector.add_ended(file.intake.counts);
        }
        SourceProgress::Ended
    }

    fn intake(&self) -> Option<&Intake> {
        None
    }

    fn intakes(&self) -> Vec<&Intake> {
        self.files.iter().map(|file| &file.intake).collect()
    }
}
