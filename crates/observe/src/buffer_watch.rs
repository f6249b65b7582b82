//! Looks into the buffers of the processes that are followed: now and then while they sleep, and when asked.
//!
//! It costs at most a hundredth of one processor, and a few looks ahead of that: what the looks took of it is
//! measured, and what is not paid for waits. Processes with empty buffers are looked at less and less often. The searches
//! for new streams at forks and ends, for which a process stands still, have a share of their own.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Instant;

use weir_inspect::ProcessBuffers;
use weir_inspect::call_sites::{CallSites, STREAMS_MOST};
use weir_model::Mode;
use weir_model::trace::{Buffer, SnapshotMoment, WriteSite};
use weir_sys::clock::{now_ns, thread_cpu_ns};
use weir_sys::{blocking_calls, process_stat};
use weir_trace_api::{EventSink, RawEvent, RawEventKind};

const MILLISECOND: u64 = 1_000_000;
/// Between two looks at a process that has something in its buffers.
const INTERVAL_NS: u64 = 100 * MILLISECOND;
/// And at one that has nothing in them: a wait of a second must be seen from its first part.
const INTERVAL_MOST_NS: u64 = 400 * MILLISECOND;
/// The first time comes sooner: a program that is busy from its beginning is not to be slowed, see [`CallSites::rest`].
const FIRST_NS: u64 = 30 * MILLISECOND;
/// What has not changed is said again after this time.
const REPEAT_NS: u64 = 500 * MILLISECOND;
/// The share of time that looks may take, one part in so many: with what is around them, a hundredth.
const SHARE: u64 = 125;
/// Unused time is kept up to this much: longer than this, an engine does not wait for a tick.
const CREDIT_MOST_NS: i64 = 2 * MILLISECOND as i64;
/// What the first looks may take, which have to find the streams: a short run has no time to pay for them.
const CREDIT_FIRST_NS: i64 = 30 * MILLISECOND as i64;

/// Of the searches at forks and ends: a program that forks all the time would stand still for most of it.
const SEARCH_SHARE: u64 = 20;
/// So much of that is there from the beginning, and kept: hundreds of forks and ends are nothing out of the ordinary.
const SEARCH_CREDIT_NS: i64 = 300 * MILLISECOND as i64;
/// A process that was not searched for so long is searched in any case.
const SEARCH_AGAIN_NS: u64 = 100 * MILLISECOND;

/// The processes that are looked at.
#[derive(Default)]
pub struct BufferWatch {
    processes: HashMap<u32, Watched>,
    due: BinaryHeap<Reverse<(u64, u32)>>,
    looks: Credit,
    last_ns: u64,
    places: CallSites,
    /// Every end is worth a search.
    exact: bool,
    searches: Credit,
    /// Searches that were left out.
    spared: u64,
}

#[derive(Default)]
struct Watched {
    looker: ProcessBuffers,
    due_ns: u64,
    interval_ns: u64,
    cpu_ticks: Option<u64>,
    said: Vec<Buffer>,
    said_ns: u64,
}

/// Time that may be taken from the programs: a share of all that passes, and what was given in advance.
#[derive(Debug, Clone, Copy, Default)]
struct Credit {
    left_ns: i64,
    earned_ns: u64,
}

impl Credit {
    fn of(first_ns: i64) -> Self {
        Self { left_ns: first_ns, earned_ns: 0 }
    }

    /// One part in `share` of the time since the last call; unused, it is kept up to `most_ns`, or what it was before.
    fn earn(&mut self, now_ns: u64, share: u64, most_ns: i64) {
        let earned = now_ns.saturating_sub(self.earned_ns) / share;
        self.left_ns = self.left_ns.saturating_add_unsigned(earned).min(self.left_ns.max(most_ns));
        self.earned_ns = now_ns;
    }

    fn spend(&mut self, ns: u64) {
        self.left_ns = self.left_ns.saturating_sub_unsigned(ns);
    }
}

/// What a process does most of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Sleep,
    Work,
    /// Or nobody knows.
    Nothing,
}

impl Watched {
    /// What it did since the last visit, by its state and its processor time.
    fn does(&mut self, pid: u32) -> Does {
        let Some(stat) = process_stat::read(pid) else { return Does::Nothing };
        let ticks = stat.cpu_ticks();
        match self.cpu_ticks.replace(ticks) {
            Some(before) if ticks > before + 1 => Does::Work,
            Some(_) if stat.state == b'S' => Does::Sleep,
            None if stat.state == b'R' && ticks > 1 => Does::Work,
            _ => Does::Nothing,
        }
    }

    /// Whether these buffers are worth a report now.
    fn is_news(&mut self, buffers: &[Buffer], now_ns: u64) -> bool {
        let news = self.said != buffers || now_ns.saturating_sub(self.said_ns) >= REPEAT_NS;
        if news {
            self.said = buffers.to_vec();
            self.said_ns = now_ns;
        }
        news
    }
}

impl BufferWatch {
    /// Of no process yet.
    pub fn new() -> BufferWatch {
        let (looks, searches) = (Credit::of(CREDIT_FIRST_NS), Credit::of(SEARCH_CREDIT_NS));
        BufferWatch { looks, searches, ..BufferWatch::default() }
    }

    /// New streams are searched for at every fork and end, whatever it costs.
    #[must_use]
    pub fn exactly(self, exact: bool) -> BufferWatch {
        BufferWatch { exact, ..self }
    }

    /// What was left out, in sentences.
    pub fn blind(&self) -> Option<String> {
        (self.spared > 0).then(|| {
            format!(
                "streams that were opened shortly before {} of the forks and ends: searching for them would have slowed the \
                 program; --exact does",
                self.spared
            )
        })
    }

    /// A process is followed from now on.
    pub fn begin(&mut self, pid: u32) {
        self.add(pid, Watched::default());
    }

    /// It has a new image, since this time.
    pub fn exec(&mut self, pid: u32, at_ns: u64) {
        self.places.exec(pid, at_ns);
        self.add(pid, Watched::default());
    }

    /// A child that has its parent's image and a copy of its buffers. Of one that has its parent's memory itself
    /// (vfork) nothing is found until it executes.
    pub fn fork(&mut self, parent: u32, child: u32) {
        let of_parent = self.processes.get(&parent).map(|one| &one.looker);
        let looker = ProcessBuffers::of_child(of_parent, parent, child);
        self.places.fork(parent, child);
        self.add(child, Watched { looker, ..Watched::default() });
    }

    /// It has ended.
    pub fn end(&mut self, pid: u32) {
        self.places.end(pid);
        self.processes.remove(&pid);
    }

    /// What a look by anybody has found.
    pub fn note(&mut self, pid: u32, moment: SnapshotMoment, buffers: &[Buffer], at_ns: u64) {
        self.places.note(pid, moment, buffers, at_ns);
    }

    /// Where programs wrote what was seen waiting; `began_ns` is the recording's time 0.
    pub fn wrote(&mut self, began_ns: u64) -> Vec<WriteSite> {
        std::mem::take(&mut self.places).finish(began_ns)
    }

    /// What is in the buffers of a process now; for the stops at which it forks, executes or ends.
    pub fn look(&mut self, pid: u32, moment: SnapshotMoment) -> Vec<Buffer> {
        let now_ns = now_ns();
        self.searches.earn(now_ns, SEARCH_SHARE, SEARCH_CREDIT_NS);
        let pays = self.exact || self.searches.left_ns > 0;
        let mut stranger = Watched::default();
        let one = self.processes.get_mut(&pid).unwrap_or(&mut stranger);
        match moment {
            SnapshotMoment::Sample => {}
            SnapshotMoment::Call => one.looker.search_until_found(),
            _ if pays || one.looker.searched_before(now_ns.saturating_sub(SEARCH_AGAIN_NS)) => {
                one.looker.search_again(now_ns);
            }
            _ => self.spared += 1,
        }
        let start_ns = thread_cpu_ns();
        let buffers = one.looker.look(pid);
        if !matches!(moment, SnapshotMoment::Sample | SnapshotMoment::Call) {
            self.searches.spend(thread_cpu_ns() - start_ns);
        }
        if matches!(moment, SnapshotMoment::Sample | SnapshotMoment::Call) {
            watch_writes(&mut self.places, pid, &one.looker, &buffers);
        }
        buffers
    }

    /// The C library of a command stands, with the list of its streams at this address; it waits. Has its writes watched.
    pub fn begins(&mut self, pid: u32, list: u64) {
        let mut looker = ProcessBuffers::of_glibc(list);
        let buffers = looker.look(pid);
        let words = looker.moves(pid, &worth_watching(&self.places, pid, &buffers));
        self.places.begins(pid, &words);
    }

    /// It does no longer.
    pub fn begun(&mut self, pid: u32) {
        self.places.settle(pid);
    }

    /// Looks at the processes whose turn it is and reports what waits in those that sleep. To be called often:
    /// every 20 ms or so; it returns at once if there is nothing to do.
    pub fn tick(&mut self, now_ns: u64, sink: &mut EventSink) {
        self.looks.earn(now_ns, SHARE, CREDIT_MOST_NS);
        self.last_ns = now_ns;
        self.places.tick(now_ns);
        let (begun, mut start_ns) = (Instant::now(), thread_cpu_ns());
        while self.looks.left_ns > 0 {
            let Some(&Reverse((due_ns, pid))) = self.due.peek().filter(|next| next.0.0 <= now_ns) else {
                break;
            };
            self.due.pop();
            if self.processes.get(&pid).is_some_and(|one| one.due_ns == due_ns) {
                // Others came first: what the process writes meanwhile is written before its look.
                self.visit(pid, now_ns + begun.elapsed().as_nanos() as u64, sink);
            }
            let end_ns = thread_cpu_ns();
            self.looks.spend(end_ns - start_ns);
            start_ns = end_ns;
        }
    }

    fn visit(&mut self, pid: u32, now_ns: u64, sink: &mut EventSink) {
        let Some(one) = self.processes.get_mut(&pid) else { return };
        let mut interval_ns = INTERVAL_NS;
        let does = one.does(pid);
        if does == Does::Work {
            self.places.rest(pid);
        }
        if does == Does::Sleep {
            let buffers = one.looker.look(pid);
            watch_writes(&mut self.places, pid, &one.looker, &buffers);
            let waits = buffers.iter().any(|one| one.pending_bytes > 0 || one.unread_bytes > 0);
            if !waits {
                interval_ns = (one.interval_ns * 2).min(INTERVAL_MOST_NS);
                one.said.clear();
            } else if one.is_news(&buffers, now_ns) {
                let kind =
                    RawEventKind::buffers(pid, SnapshotMoment::Sample, buffers, blocking_calls::current(pid));
                sink(RawEvent { ns: now_ns, pid, tid: pid, kind });
            }
        }
        one.interval_ns = interval_ns;
        one.due_ns = now_ns + interval_ns;
        self.due.push(Reverse((one.due_ns, pid)));
    }

    fn add(&mut self, pid: u32, mut one: Watched) {
        one.interval_ns = INTERVAL_NS;
        one.due_ns = self.last_ns + FIRST_NS;
        self.due.push(Reverse((one.due_ns, pid)));
        self.processes.insert(pid, one);
    }
}

/// Has the writes watched into streams that are worth it.
fn watch_writes(places: &mut CallSites, pid: u32, looker: &ProcessBuffers, buffers: &[Buffer]) {
    let words = looker.moves(pid, &worth_watching(places, pid, buffers));
    places.watch(pid, &words);
}

/// Those in which something waits, did wait, and standard output.
fn worth_watching<'a>(places: &CallSites, pid: u32, buffers: &'a [Buffer]) -> Vec<&'a Buffer> {
    let waits = |one: &Buffer| one.pending_bytes > 0;
    let likely = |one: &Buffer| one.fd == 1 && one.mode != Some(Mode::None);
    let known = |one: &Buffer| places.has(pid, one.address);
    let mut wanted: Vec<&Buffer> =
        buffers.iter().filter(|one| one.fd >= 0 && (waits(one) || likely(one) || known(one))).collect();
    wanted.sort_by_key(|one| std::cmp::Reverse((waits(one), known(one), one.pending_bytes)));
    wanted.truncate(STREAMS_MOST);
    wanted
}

impl std::fmt::Debug for BufferWatch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("BufferWatch").field("processes", &self.processes.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As after many forks: nothing is left for searches. This program's image is read before, which takes longer than
    /// [`SEARCH_AGAIN_NS`] in a build with debug information.
    fn spent(exact: bool) -> BufferWatch {
        ProcessBuffers::default().look(std::process::id());
        let mut watch = BufferWatch::new().exactly(exact);
        watch.searches = Credit { left_ns: i64::MIN / 2, earned_ns: now_ns() };
        watch
    }

    #[test]
    fn one_that_was_searched_a_moment_ago_is_not_searched_again_when_nothing_is_left() {
        let (pid, mut watch) = (std::process::id(), spent(false));
        watch.begin(pid);
        watch.look(pid, SnapshotMoment::Fork);
        assert_eq!(watch.blind(), None, "it was never searched");
        watch.look(pid, SnapshotMoment::Sample);
        assert_eq!(watch.blind(), None, "no search is due");
        watch.look(pid, SnapshotMoment::Exit);
        assert!(
            watch
                .blind()
                .is_some_and(|said| said.contains("before 1 of the forks") && said.contains("--exact"))
        );
        watch.fork(pid, pid + 1);
        watch.look(pid + 1, SnapshotMoment::Exec);
        assert!(watch.blind().is_some_and(|said| said.contains("before 2 of the forks")), "nor its child");
        watch.searches.left_ns = 1;
        watch.look(pid, SnapshotMoment::Exit);
        assert!(
            watch.blind().is_some_and(|said| said.contains("before 2 of the forks")),
            "there is something left"
        );
    }

    #[test]
    fn exactly_is_at_each_fork() {
        let (pid, mut watch) = (std::process::id(), spent(true));
        watch.begin(pid);
        (0..3).for_each(|_| drop(watch.look(pid, SnapshotMoment::Fork)));
        assert_eq!(watch.blind(), None);
    }
}
