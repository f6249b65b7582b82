//! Pauses: from one look at a process to the next, nobody sees its calls. What it has open is looked up at both ends, and
//! what it moved is given to streams as far as it is known to which: see [`crate::gap_attribution`].

use foldhash::{HashMap, HashMapExt, HashSet};
use weir_model::Direction;
use weir_model::trace::{IoTotals, OpenFile};
use weir_sys::open_files::{FdInfo, current_size, direction_of, fdinfo, open_file};
use weir_sys::proc;

use crate::Recorder;
use crate::fd_revalidation::{doubt, goes_alike, put};
use crate::fd_snapshots::FdSnapshots;
use crate::fd_table::{FdEntry, FdTable, same_open_file};
use crate::gap_attribution::{
    self, CallsAndBytes, FdFile, FdProgress, FdsAtGapEnd, ProcessGap, StreamActivity, WindowActivity,
};
use crate::open_files::OpenFileTable;
use crate::streams::RecentStream;

/// Of a process that has more descriptors, only those are looked at that it uses.
const LOOKED_AT_MOST: usize = 24;
/// So many that are new are looked at.
const NEW_MOST: usize = 16;

/// Where a descriptor stood when a pause began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GapMark {
    pub file: u32,
    /// Of a regular file.
    pub position: Option<u64>,
    pub way: Option<Direction>,
    /// It had been used, and had not moved on by that.
    pub still: bool,
}

/// A pause that goes on.
#[derive(Debug, Default)]
struct Begun {
    at_s: f64,
    looked_s: f64,
    totals: IoTotals,
    before: WindowActivity,
    marks: HashMap<i32, GapMark>,
    open: HashSet<FdFile>,
    glances: FdSnapshots,
}

/// A stream of an image; None: it is not known which.
pub(super) type GapStream = (u32, Option<FdFile>, Direction);

/// The pauses of a process.
#[derive(Debug, Default)]
pub(super) struct SamplingGaps {
    begun: Option<Begun>,
    /// The last one, until it is seen what came next; and the image that it ended with.
    past: Option<(ProcessGap, u32)>,
    looked_s: f64,
    /// Where files stood then.
    stood: HashMap<FdFile, u64>,
    /// What went through each stream in those that are over, and when the first of them began.
    pub shares: HashMap<GapStream, (CallsAndBytes, f64)>,
}

impl SamplingGaps {
    /// One goes on.
    pub fn is_now(&self) -> bool {
        self.begun.is_some()
    }

    /// The glances of the pause that goes on, to be put back.
    pub fn glances(&mut self) -> Option<FdSnapshots> {
        self.begun.as_mut().map(|begun| std::mem::take(&mut begun.glances))
    }

    /// With what was seen at another one.
    pub fn put_back(&mut self, glances: FdSnapshots) {
        if let Some(begun) = &mut self.begun {
            begun.glances = glances;
        }
    }

    /// Nobody looked from the end of the last one until then, either.
    pub fn went_on(&mut self, from_s: f64, until_s: f64) {
        if let Some((past, _)) = self.past.as_mut().filter(|(past, _)| past.to_s <= from_s) {
            (past.to_s, self.looked_s) = (until_s, until_s);
        }
    }

    fn add(&mut self, pause: &ProcessGap, after: &WindowActivity, image: u32) {
        for direction in [Direction::In, Direction::Out] {
            for (place, amount) in gap_attribution::shares(pause, after, direction) {
                let share = self.shares.entry((image, place, direction));
                share.or_insert((CallsAndBytes::default(), pause.from_s)).0.add(amount);
            }
        }
    }
}

impl Recorder {
    /// Nobody looks at the calls of a process from here on, or somebody does again; with its own totals.
    pub(super) fn pause(&mut self, pid: u32, totals: IoTotals, ends: bool, at_s: f64) {
        self.live_of(pid, at_s);
        if ends { self.pause_ends(pid, totals, at_s) } else { self.pause_begins(pid, totals, at_s) }
    }

    fn pause_begins(&mut self, pid: u32, totals: IoTotals, at_s: f64) {
        if self.live_of(pid, at_s).pauses.begun.is_some() {
            return;
        }
        let before = self.burst(pid);
        let pauses = &mut self.live_of(pid, at_s).pauses;
        if let Some((past, image)) = pauses.past.take() {
            pauses.add(&past, &before, image);
        }
        let (looked_s, stood) = (pauses.looked_s, std::mem::take(&mut pauses.stood));
        let (marks, open) = self.with_table(pid, |table, files| {
            let marks = marks(table, files, pid, &before, &stood);
            doubt(table);
            (marks, table.iter().map(|(fd, known)| (*fd, known.file)).collect())
        });
        self.live_of(pid, at_s).pauses.begun =
            Some(Begun { at_s, looked_s, totals, before, marks, open, glances: FdSnapshots::default() });
    }

    fn pause_ends(&mut self, pid: u32, totals: IoTotals, at_s: f64) {
        let live = self.live_of(pid, at_s);
        let (image, process) = (live.image, live.process);
        // One that began in the pause was not looked at before.
        let begun = live.pauses.begun.take();
        let started_s = self.processes[process].started_s;
        let mut begun =
            begun.unwrap_or_else(|| Begun { at_s: started_s, looked_s: started_s, ..Begun::default() });
        let seeks: HashSet<FdFile> = self.flows.seeking(pid, image);
        let mut stood = HashMap::new();
        let mut marks = begun.marks.clone();
        let (table, mut glimpsed) = self.with_table(pid, |table, files| {
            doubt(table);
            let glimpsed = std::mem::take(&mut begun.glances).settle(table, &mut marks);
            (behind_pause(table, files, pid, &marks, &seeks, &mut stood), glimpsed)
        });
        let moved = totals.since(begun.totals);
        let stays = |place: &FdFile| table.as_ref().is_some_and(|table| table.kept.contains_key(place));
        let gone = gone(&self.files, &begun.marks, |place| stays(place) || seeks.contains(place));
        glimpsed.retain(|place, _| !stays(place));
        let Begun { at_s: from_s, looked_s, before, open, .. } = begun;
        let pause = ProcessGap { from_s, to_s: at_s, looked_s, moved, before, table, gone, open, glimpsed };
        let pauses = &mut self.live_of(pid, at_s).pauses;
        pauses.past = Some((pause, image));
        (pauses.looked_s, pauses.stood) = (at_s, stood);
    }

    /// The process has ended, or the recording: what is known of its pauses.
    pub(super) fn last_pause(&mut self, pid: u32, live: &mut super::Live, io: Option<IoTotals>, at_s: f64) {
        let after = self.burst(pid);
        let seeks = self.flows.seeking(pid, live.image);
        let pauses = &mut live.pauses;
        if let Some((past, image)) = pauses.past.take() {
            pauses.add(&past, &after, image);
        }
        if let (Some(begun), Some(io)) = (pauses.begun.take(), io.or(live.latest)) {
            let moved = io.since(begun.totals);
            let gone = gone(&self.files, &begun.marks, |place| seeks.contains(place));
            let Begun { at_s: from_s, looked_s, before, open, glances, .. } = begun;
            let glimpsed = glances.settle(&mut FdTable::new(), &mut HashMap::new());
            let pause =
                ProcessGap { from_s, to_s: at_s, looked_s, moved, before, table: None, gone, open, glimpsed };
            pauses.add(&pause, &WindowActivity::new(), live.image);
        }
    }

    /// What was seen of a process since the last pause.
    fn burst(&mut self, pid: u32) -> WindowActivity {
        let mut burst = WindowActivity::new();
        for (index, recent) in self.flows.take_recent(pid) {
            let flow = &self.flows.all[index];
            let RecentStream { calls, bytes, first_s, last_s } = recent;
            let apart = self.files.is_socket(flow.file);
            let active = StreamActivity { calls, bytes, first_s, last_s, apart };
            burst.insert(((flow.fd, flow.file), flow.direction), active);
            self.positions.forget(flow.file);
            self.flows.forget_place(index);
        }
        burst
    }
}

/// Where the descriptors stand that may move on in a pause.
fn marks(
    table: &mut FdTable,
    files: &mut OpenFileTable,
    pid: u32,
    burst: &WindowActivity,
    stood: &HashMap<FdFile, u64>,
) -> HashMap<i32, GapMark> {
    let used: HashSet<i32> = burst.keys().map(|((fd, _), _)| *fd).collect();
    let few = table.len() <= LOOKED_AT_MOST;
    let mut fds: Vec<i32> = table.keys().copied().filter(|fd| few || *fd <= 2 || used.contains(fd)).collect();
    fds.sort_unstable();
    fds.truncate(4 * LOOKED_AT_MOST);
    let mark = |fd: i32| {
        let now = fdinfo(pid, fd)?;
        let known = table.get(&fd).map(|known| known.file).filter(|id| is(&files.all[*id as usize], now));
        let file = match known {
            Some(file) => file,
            None => put(table, files, fd, open_file(pid, fd)?),
        };
        let position = files.is_regular(file).then_some(now.position);
        let still = used.contains(&fd) && stood.get(&(fd, file)).copied().unwrap_or(0) == now.position;
        Some((fd, GapMark { file, position, way: direction_of(now.flags), still }))
    };
    fds.into_iter().filter_map(mark).collect()
}

/// Files that were closed in the pause: how far they reached beyond the place where they stood, if they are there still.
fn gone(
    files: &OpenFileTable,
    marks: &HashMap<i32, GapMark>,
    but: impl Fn(&FdFile) -> bool,
) -> HashMap<FdFile, FdProgress> {
    let beyond = |(&fd, mark): (&i32, &GapMark)| {
        let (position, place) = (mark.position?, (fd, mark.file));
        let file = files.all.get(mark.file as usize).filter(|_| !but(&place))?;
        let size = current_size(file)?;
        Some((
            place,
            FdProgress {
                advance: Some(size as i64 - position as i64),
                way: mark.way,
                stood: position,
                ..FdProgress::default()
            },
        ))
    };
    marks.iter().filter_map(beyond).collect()
}

fn is(file: &OpenFile, now: FdInfo) -> bool {
    now.ino != 0 && now.ino == file.ino && goes_alike(file, now.flags)
}

/// What a process has open behind a pause, beside what it had before. None: it has just ended.
fn behind_pause(
    table: &mut FdTable,
    files: &mut OpenFileTable,
    pid: u32,
    marks: &HashMap<i32, GapMark>,
    seeks: &HashSet<FdFile>,
    stood: &mut HashMap<FdFile, u64>,
) -> Option<FdsAtGapEnd> {
    let numbers: HashSet<i32> = proc::descriptors(pid).into_iter().collect();
    if numbers.is_empty() {
        return None;
    }
    let mut found = FdsAtGapEnd { numbers, ..FdsAtGapEnd::default() };
    table.retain(|fd, _| found.numbers.contains(fd));
    let mut others: Vec<i32> = found
        .numbers
        .iter()
        .copied()
        .filter(|fd| !marks.contains_key(fd) && !table.contains_key(fd))
        .collect();
    for (&fd, mark) in marks {
        let Some(now) = fdinfo(pid, fd) else { continue };
        if !is(&files.all[mark.file as usize], now) {
            others.push(fd);
            continue;
        }
        let sought = seeks.contains(&(fd, mark.file));
        let advance = mark.position.filter(|_| !sought).map(|before| now.position as i64 - before as i64);
        found.kept.insert(
            (fd, mark.file),
            FdProgress { advance, way: direction_of(now.flags), still: mark.still, stood: 0 },
        );
        stood.insert((fd, mark.file), now.position);
        if let Some(known) = table.get_mut(&fd) {
            known.stale = false;
        }
    }
    others.sort_unstable();
    for fd in others.into_iter().take(NEW_MOST) {
        // A second descriptor of what was open before says nothing new.
        let twin = |other: &&i32| same_open_file(pid, fd, **other);
        let twin = found.kept.keys().map(|(other, _)| other).find(twin).and_then(|other| marks.get(other));
        if let Some(mark) = twin {
            table.insert(fd, FdEntry::new(mark.file, false));
            continue;
        }
        let (Some(open), Some(now)) = (open_file(pid, fd), fdinfo(pid, fd)) else { continue };
        // Nor does what a shell had put under another number for a command, and has put back.
        let back = |mark: &&GapMark| {
            let stands = mark.position.is_none_or(|position| position > 0 && position == now.position);
            stands && is(&files.all[mark.file as usize], now)
        };
        if let Some(mark) = marks.values().find(back) {
            table.insert(fd, crate::fd_table::FdEntry::new(mark.file, false));
            continue;
        }
        let id = put(table, files, fd, open);
        // Those that are written at their end do not begin at 0.
        let advance =
            (files.is_regular(id) && now.flags & libc::O_APPEND == 0).then_some(now.position as i64);
        found
            .new
            .insert((fd, id), FdProgress { advance, way: direction_of(now.flags), ..FdProgress::default() });
        stood.insert((fd, id), now.position);
    }
    Some(found)
}
