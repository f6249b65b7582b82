//! Gaps between the sampling windows of a process, in which its calls are not recorded. The recorder reads the
//! descriptors and totals of the process at both edges of a gap, and `gap_attribution` distributes the bytes
//! between them over the streams. The shares are added to the streams when the process exits.

use foldhash::{HashMap, HashMapExt, HashSet};
use weir_model::Direction;
use weir_model::trace::{IoTotals, OpenFile};
use weir_sys::open_files::{FdInfo, current_size, direction_of, fdinfo, open_file};
use weir_sys::proc;

use crate::Recorder;
use crate::fd_revalidation::{enter, mark_stale, same_access_mode};
use crate::fd_snapshots::FdSnapshots;
use crate::fd_table::{FdEntry, FdTable, same_open_file};
use crate::gap_attribution::{
    self, CallsAndBytes, FdFile, FdProgress, FdsAtGapEnd, ProcessGap, StreamActivity, WindowActivity,
};
use crate::gap_image::image_of_gap;
use crate::open_files::OpenFileTable;
use crate::streams::RecentStream;

/// With more descriptors, only the standard and the used ones are read: each costs one read of /proc.
const MAX_MARKED_FDS: usize = 24;
/// Limit of new descriptors that are read at a gap's end.
const MAX_NEW_FDS: usize = 16;

/// A descriptor at the start of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GapMark {
    pub file: u32,
    /// Position of a regular file, in bytes.
    pub position: Option<u64>,
    pub access: Option<Direction>,
    /// The window's calls used the descriptor without moving its position (pread(2), or reads at end of file).
    pub unmoved: bool,
}

/// A gap in progress.
#[derive(Debug, Default)]
struct CurrentGap {
    at_s: f64,
    window_start_s: f64,
    totals: IoTotals,
    window_before: WindowActivity,
    marks: HashMap<i32, GapMark>,
    open_at_start: HashSet<FdFile>,
    fd_snapshots: FdSnapshots,
}

/// A stream of an image (index, descriptor and file, direction). None is an unknown stream.
pub(super) type GapStream = (u32, Option<FdFile>, Direction);

/// The gaps of a process.
#[derive(Debug, Default)]
pub(super) struct SamplingGaps {
    current: Option<CurrentGap>,
    /// The last gap, until the next window is known, and the image at its end.
    last: Option<(ProcessGap, u32)>,
    window_start_s: f64,
    /// Positions at the start of the current window, in bytes.
    positions: HashMap<FdFile, u64>,
    /// Calls and bytes of each stream in past gaps, and the time (seconds) at which the first of these gaps
    /// began.
    pub shares: HashMap<GapStream, (CallsAndBytes, f64)>,
    /// Bytes of each open file in past gaps and in the windows before them.
    known_bytes: HashMap<u32, f64>,
}

impl SamplingGaps {
    /// Returns whether a gap is in progress.
    pub fn in_gap(&self) -> bool {
        self.current.is_some()
    }

    /// Takes the fd snapshots of the current gap. [`SamplingGaps::put_fd_snapshots`] returns them.
    pub fn take_fd_snapshots(&mut self) -> Option<FdSnapshots> {
        self.current.as_mut().map(|current| std::mem::take(&mut current.fd_snapshots))
    }

    pub fn put_fd_snapshots(&mut self, fd_snapshots: FdSnapshots) {
        if let Some(current) = &mut self.current {
            current.fd_snapshots = fd_snapshots;
        }
    }

    /// Extends the last gap to `until_s` if no window came between.
    pub fn extend_last(&mut self, from_s: f64, until_s: f64) {
        if let Some((last, _)) = self.last.as_mut().filter(|(last, _)| last.to_s <= from_s) {
            (last.to_s, self.window_start_s) = (until_s, until_s);
        }
    }

    fn add(&mut self, mut gap: ProcessGap, after: &WindowActivity, image: u32) {
        for ((_, file), progress) in &mut gap.closed {
            let known = self.known_bytes.get(file).copied().unwrap_or(0.0) as u64;
            progress.unknown_at_start = progress.unknown_at_start.saturating_sub(known);
        }
        for direction in [Direction::In, Direction::Out] {
            for (fd_file, amount) in gap_attribution::shares(&gap, after, direction) {
                let share = self.shares.entry((image, fd_file, direction));
                share.or_insert((CallsAndBytes::default(), gap.from_s)).0.add(amount);
                if let Some((_, file)) = fd_file {
                    *self.known_bytes.entry(file).or_default() += amount.bytes;
                }
            }
        }
        for (((_, file), _), active) in &gap.window_before {
            *self.known_bytes.entry(*file).or_default() += active.bytes as f64;
        }
    }
}

impl Recorder {
    /// Records the start or the end of a gap of one process, with the kernel's totals at that time.
    pub(super) fn record_gap_edge(&mut self, pid: u32, totals: IoTotals, ends: bool, at_s: f64) {
        self.live_process(pid, at_s);
        if ends { self.end_gap(pid, totals, at_s) } else { self.begin_gap(pid, totals, at_s) }
    }

    fn begin_gap(&mut self, pid: u32, totals: IoTotals, at_s: f64) {
        if self.live_process(pid, at_s).gaps.current.is_some() {
            return;
        }
        let window_before = self.window(pid);
        let gaps = &mut self.live_process(pid, at_s).gaps;
        if let Some((last, image)) = gaps.last.take() {
            gaps.add(last, &window_before, image);
        }
        let (window_start_s, positions) = (gaps.window_start_s, std::mem::take(&mut gaps.positions));
        let (marks, open_at_start) = self.with_table(pid, |table, files| {
            let marks = read_marks(table, files, pid, &window_before, &positions);
            mark_stale(table);
            (marks, table.iter().map(|(fd, known)| (*fd, known.file)).collect())
        });
        self.live_process(pid, at_s).gaps.current = Some(CurrentGap {
            at_s,
            window_start_s,
            totals,
            window_before,
            marks,
            open_at_start,
            fd_snapshots: FdSnapshots::default(),
        });
    }

    fn end_gap(&mut self, pid: u32, totals: IoTotals, at_s: f64) {
        let live = self.live_process(pid, at_s);
        let (end_image, process) = (live.image, live.process);
        // A process that started within the gap has no earlier window.
        let current = live.gaps.current.take();
        let started_s = self.processes[process].started_s;
        let mut current = current.unwrap_or_else(|| CurrentGap {
            at_s: started_s,
            window_start_s: started_s,
            ..CurrentGap::default()
        });
        let image = image_of_gap(&self.processes[process].images, end_image, current.at_s, at_s);
        let seeks: HashSet<FdFile> = self.streams.seeked_files(pid, end_image);
        let mut positions = HashMap::new();
        let mut marks = current.marks.clone();
        let (fds_at_end, mut short_lived) = self.with_table(pid, |table, files| {
            mark_stale(table);
            let short_lived = std::mem::take(&mut current.fd_snapshots).enter_files(table, &mut marks);
            (fds_at_gap_end(table, files, pid, &marks, &seeks, &mut positions), short_lived)
        });
        let transferred = totals.since(current.totals);
        let stays =
            |fd_file: &FdFile| fds_at_end.as_ref().is_some_and(|fds| fds.still_open.contains_key(fd_file));
        let closed =
            closed_files(&self.files, &current.marks, |fd_file| stays(fd_file) || seeks.contains(fd_file));
        short_lived.retain(|fd_file, _| !stays(fd_file));
        let CurrentGap { at_s: from_s, window_start_s, window_before, open_at_start, .. } = current;
        let gap = ProcessGap {
            from_s,
            to_s: at_s,
            window_start_s,
            transferred,
            window_before,
            fds_at_end,
            closed,
            open_at_start,
            short_lived,
        };
        let gaps = &mut self.live_process(pid, at_s).gaps;
        gaps.last = Some((gap, image));
        (gaps.window_start_s, gaps.positions) = (at_s, positions);
    }

    /// Attributes the last gaps of a process that has exited, or at the end of the recording.
    pub(super) fn finish_gaps(
        &mut self,
        pid: u32,
        live: &mut super::LiveProcess,
        io: Option<IoTotals>,
        at_s: f64,
    ) {
        let after = self.window(pid);
        let seeks = self.streams.seeked_files(pid, live.image);
        let gaps = &mut live.gaps;
        if let Some((last, image)) = gaps.last.take() {
            gaps.add(last, &after, image);
        }
        if let (Some(current), Some(io)) = (gaps.current.take(), io.or(live.latest_totals)) {
            let transferred = io.since(current.totals);
            let closed = closed_files(&self.files, &current.marks, |fd_file| seeks.contains(fd_file));
            let CurrentGap {
                at_s: from_s, window_start_s, window_before, open_at_start, fd_snapshots, ..
            } = current;
            let short_lived = fd_snapshots.enter_files(&mut FdTable::new(), &mut HashMap::new());
            let gap = ProcessGap {
                from_s,
                to_s: at_s,
                window_start_s,
                transferred,
                window_before,
                fds_at_end: None,
                closed,
                open_at_start,
                short_lived,
            };
            let images = &self.processes[live.process].images;
            let image = image_of_gap(images, live.image, from_s, at_s);
            gaps.add(gap, &WindowActivity::new(), image);
        }
    }

    /// Returns the activity of a process since the last gap, and forgets the positions of its files.
    fn window(&mut self, pid: u32) -> WindowActivity {
        let mut window = WindowActivity::new();
        for (index, recent) in self.streams.take_recent(pid) {
            let stream = &self.streams.all[index];
            let RecentStream { calls, bytes, first_s, last_s } = recent;
            let partly_counted = self.files.is_socket(stream.file);
            let active = StreamActivity { calls, bytes, first_s, last_s, partly_counted };
            window.insert(((stream.fd, stream.file), stream.direction), active);
            self.positions.forget(stream.file);
            self.streams.forget_position(index);
        }
        window
    }
}

/// Reads the position of each descriptor that may be used in a gap.
fn read_marks(
    table: &mut FdTable,
    files: &mut OpenFileTable,
    pid: u32,
    window: &WindowActivity,
    positions: &HashMap<FdFile, u64>,
) -> HashMap<i32, GapMark> {
    let used: HashSet<i32> = window.keys().map(|((fd, _), _)| *fd).collect();
    let few = table.len() <= MAX_MARKED_FDS;
    let mut fds: Vec<i32> = table.keys().copied().filter(|fd| few || *fd <= 2 || used.contains(fd)).collect();
    fds.sort_unstable();
    fds.truncate(4 * MAX_MARKED_FDS);
    let mark = |fd: i32| {
        let now = fdinfo(pid, fd)?;
        let known =
            table.get(&fd).map(|known| known.file).filter(|id| is_same(&files.all[*id as usize], now));
        let file = match known {
            Some(file) => file,
            None => enter(table, files, fd, open_file(pid, fd)?),
        };
        let position = files.is_regular(file).then_some(now.position);
        let unmoved = used.contains(&fd) && positions.get(&(fd, file)).copied().unwrap_or(0) == now.position;
        Some((fd, GapMark { file, position, access: direction_of(now.flags), unmoved }))
    };
    fds.into_iter().filter_map(mark).collect()
}

/// Returns the files that were closed in the gap, with the number of bytes from their position to their end.
/// Files that `excluded` matches, or that were removed, are left out.
fn closed_files(
    files: &OpenFileTable,
    marks: &HashMap<i32, GapMark>,
    excluded: impl Fn(&FdFile) -> bool,
) -> HashMap<FdFile, FdProgress> {
    let to_end = |(&fd, mark): (&i32, &GapMark)| {
        let (position, fd_file) = (mark.position?, (fd, mark.file));
        let file = files.all.get(mark.file as usize).filter(|_| !excluded(&fd_file))?;
        let size = current_size(file)?;
        Some((
            fd_file,
            FdProgress {
                advance: Some(size as i64 - position as i64),
                access: mark.access,
                unmoved: mark.unmoved,
                unknown_at_start: position,
            },
        ))
    };
    marks.iter().filter_map(to_end).collect()
}

fn is_same(file: &OpenFile, now: FdInfo) -> bool {
    now.ino != 0 && now.ino == file.ino && same_access_mode(file, now.flags)
}

/// Returns the mark of an open file that `fd` refers to as well.
fn mark_of_duplicate<'m>(
    pid: u32,
    fd: i32,
    still_open: &HashMap<FdFile, FdProgress>,
    marks: &'m HashMap<i32, GapMark>,
) -> Option<&'m GapMark> {
    let (original, _) = still_open.keys().find(|(other, _)| same_open_file(pid, fd, *other))?;
    marks.get(original)
}

/// Reads the descriptors of a process at the end of a gap. Returns none if the process has exited.
fn fds_at_gap_end(
    table: &mut FdTable,
    files: &mut OpenFileTable,
    pid: u32,
    marks: &HashMap<i32, GapMark>,
    seeks: &HashSet<FdFile>,
    positions: &mut HashMap<FdFile, u64>,
) -> Option<FdsAtGapEnd> {
    let fds: HashSet<i32> = proc::descriptors(pid).into_iter().collect();
    if fds.is_empty() {
        return None;
    }
    let mut at_end = FdsAtGapEnd { fds, ..FdsAtGapEnd::default() };
    table.retain(|fd, _| at_end.fds.contains(fd));
    let mut new_fds: Vec<i32> =
        at_end.fds.iter().copied().filter(|fd| !marks.contains_key(fd) && !table.contains_key(fd)).collect();
    for (&fd, mark) in marks {
        let Some(now) = fdinfo(pid, fd) else { continue };
        if !is_same(&files.all[mark.file as usize], now) {
            new_fds.push(fd);
            continue;
        }
        let seeked = seeks.contains(&(fd, mark.file));
        let advance = mark.position.filter(|_| !seeked).map(|start| now.position as i64 - start as i64);
        at_end.still_open.insert(
            (fd, mark.file),
            FdProgress {
                advance,
                access: direction_of(now.flags),
                unmoved: mark.unmoved,
                unknown_at_start: 0,
            },
        );
        positions.insert((fd, mark.file), now.position);
        if let Some(known) = table.get_mut(&fd) {
            known.stale = false;
        }
    }
    new_fds.sort_unstable();
    for fd in new_fds.into_iter().take(MAX_NEW_FDS) {
        // A second descriptor of a file that was open before is no new file.
        if let Some(mark) = mark_of_duplicate(pid, fd, &at_end.still_open, marks) {
            table.insert(fd, FdEntry::new(mark.file, false));
            continue;
        }
        let (Some(file), Some(now)) = (open_file(pid, fd), fdinfo(pid, fd)) else { continue };
        // A shell moves a descriptor away for a command and restores it afterwards.
        let restored = |mark: &&GapMark| {
            let same_position = mark.position.is_none_or(|position| position > 0 && position == now.position);
            same_position && is_same(&files.all[mark.file as usize], now)
        };
        if let Some(mark) = marks.values().find(restored) {
            table.insert(fd, FdEntry::new(mark.file, false));
            continue;
        }
        let id = enter(table, files, fd, file);
        // An O_APPEND file does not begin at position 0.
        let advance = (files.is_regular(id) && !now.appends()).then_some(now.position as i64);
        at_end.new.insert(
            (fd, id),
            FdProgress { advance, access: direction_of(now.flags), ..FdProgress::default() },
        );
        positions.insert((fd, id), now.position);
    }
    Some(at_end)
}
