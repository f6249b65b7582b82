//! Builds the indexes of a recording in one pass over its events.

use std::cell::OnceCell;

use foldhash::{HashMap, HashMapExt};
use weir_model::StreamKind;
use weir_model::Untrusted;
use weir_model::trace::{
    Call, Event, EventKind, Op, OpenFile, Prices, StreamCounts, StreamTable, TracingCost,
};

use super::{BufferSnapshot, RuleContext, SentSignal, SyncCall, TimedCall};
use crate::cost::priced_s;
use crate::dialogue::Dialogues;
use crate::grouped::Grouped;
use crate::run_advice::RunPlanner;

/// Events with the process or open file that they are grouped by, in order of time.
#[derive(Default)]
struct EventLists<'a> {
    calls_by_pid: Vec<(u32, TimedCall<'a>)>,
    calls_by_file: Vec<(u32, TimedCall<'a>)>,
    snapshots: Vec<(u32, BufferSnapshot<'a>)>,
}

impl<'a> RuleContext<'a> {
    /// Indexes a recording. [`StreamTable`] merges the openings of one file when a rule first asks for its streams.
    pub fn new(merged: &'a StreamTable<'a>, planner: &'a dyn RunPlanner) -> Self {
        let recording = merged.recording();
        let known: Vec<&StreamCounts> = recording.counts.iter().filter(|stream| stream.is_known()).collect();
        let mut context = Self {
            recording,
            planner,
            merged,
            processes: recording.processes.iter().map(|process| (process.pid, process)).collect(),
            calls_by_pid: Grouped::default(),
            calls_by_file: Grouped::default(),
            snapshots: Grouped::default(),
            streams_by_pid: Grouped::new(known.iter().map(|stream| (stream.pid, *stream)).collect()),
            streams_by_file: Grouped::new(known.iter().map(|stream| (stream.file, *stream)).collect()),
            peers: OnceCell::new(),
            dialogues: Dialogues::default(),
            appending: HashMap::new(),
            call_counts: HashMap::new(),
            unassigned_bytes: HashMap::new(),
            tracing: TracingCost::new(recording),
            price_scales: HashMap::new(),
            children: HashMap::new(),
            forked: HashMap::new(),
            fd_history: HashMap::new(),
            syncs: Vec::new(),
            directory_syncs: Vec::new(),
            removed_names: HashMap::new(),
            signals_sent: Vec::new(),
            gaps: HashMap::new(),
        };
        for process in &recording.processes {
            if let Some(parent) = process.parent {
                context.children.entry(parent).or_default().push(process.pid);
            }
        }
        context.index_events();
        context.index_files();
        context.index_costs();
        context.index_descriptors(&known);
        context
    }

    fn index_events(&mut self) {
        let events = &self.recording.events;
        let mut lists = EventLists::default();
        lists.calls_by_pid.reserve(events.len());
        lists.calls_by_file.reserve(events.len());
        for event in events {
            self.index_event(event, &mut lists);
        }
        self.calls_by_pid = Grouped::new(lists.calls_by_pid);
        self.calls_by_file = Grouped::new(lists.calls_by_file);
        self.snapshots = Grouped::new(lists.snapshots);
    }

    fn index_event(&mut self, event: &'a Event, lists: &mut EventLists<'a>) {
        let (at_s, pid) = (event.at_s, event.pid);
        match &event.kind {
            EventKind::Call(call) => self.index_call(TimedCall { at_s, pid, call }, lists),
            EventKind::Buffers { moment, buffers, waits_in_name, files, read_until_s, .. } => {
                let snapshot = BufferSnapshot {
                    at_s,
                    read_until_s: read_until_s.map_or(at_s, |until_s| until_s.max(at_s)),
                    pid,
                    moment: *moment,
                    buffers,
                    waits_in: waits_in_name,
                };
                lists.snapshots.push((pid, snapshot));
                for &(fd, file) in files {
                    self.fd_history.entry((pid, fd)).or_default().push((at_s, file));
                }
            }
            EventKind::Fork { child } => {
                self.forked.insert(*child, at_s);
            }
            EventKind::Gap { until_s } if *until_s > at_s => {
                self.gaps.entry(pid).or_default().push((at_s, *until_s));
            }
            _ => {}
        }
    }

    fn index_call(&mut self, timed: TimedCall<'a>, lists: &mut EventLists<'a>) {
        let TimedCall { at_s, pid, call } = timed;
        lists.calls_by_pid.push((pid, timed));
        if call.result == 0 {
            if call.op.syncs() {
                self.syncs.push(SyncCall { at_s, op: call.op, file: call.file });
            }
            if let Some(name) = removed_name(call) {
                self.removed_names.insert(name, at_s);
            }
            if let Some((receiver, number)) = sent_signal(call) {
                self.signals_sent.push(SentSignal { at_s, sender: pid, receiver, number });
            }
        }
        let Some(file) = call.file else { return };
        lists.calls_by_file.push((file, timed));
        // A call that opens a file returns the descriptor.
        let fd = if call.fd >= 0 { call.fd } else { call.result as i32 };
        if fd >= 0 {
            self.fd_history.entry((pid, fd)).or_default().push((at_s, file));
        }
    }

    fn index_files(&mut self) {
        let recording = self.recording;
        let appends = |file: &&OpenFile| file.kind == StreamKind::File && file.ino != 0 && file.appends();
        for file in recording.files.iter().filter(appends) {
            self.appending.entry((file.dev, file.ino)).or_default().push(file.id);
        }
        let synced = recording.counts.iter().filter(|stream| stream.syncs > 0);
        let directories = synced.filter(|stream| self.kind(stream.file) != StreamKind::File);
        self.directory_syncs = directories.map(|stream| (stream.last_s, stream.file)).collect();
    }

    fn index_costs(&mut self) {
        let mut priced: HashMap<u32, f64> = HashMap::new();
        for stream in &self.recording.counts {
            *self.call_counts.entry(stream.pid).or_default() += stream.calls;
            if !stream.is_known() {
                let key = (stream.pid, stream.image, stream.direction);
                *self.unassigned_bytes.entry(key).or_default() += stream.bytes;
            }
            *priced.entry(stream.pid).or_default() += priced_s(self.recording, stream);
        }
        for (&pid, &priced_s) in &priced {
            let scale = Prices::scale(priced_s, self.system_s(pid), self.call_count(pid));
            self.price_scales.insert(pid, scale);
        }
    }

    fn index_descriptors(&mut self, known: &[&StreamCounts]) {
        for stream in known {
            self.fd_history.entry((stream.pid, stream.fd)).or_default().push((stream.first_s, stream.file));
        }
        for files in self.fd_history.values_mut() {
            files.sort_by(|a, b| a.0.total_cmp(&b.0));
            files.dedup_by_key(|(_, file)| *file);
        }
    }
}

/// Returns the receiver and the number of a signal that a call sends; no receiver for a process group. Returns None for number 0,
/// which only checks that the process exists (kill(2)).
fn sent_signal(call: &Call) -> Option<(Option<u32>, i32)> {
    let number = match call.op {
        Op::Kill => call.args[1] as i32,
        Op::Tgkill => call.args[2] as i32,
        _ => return None,
    };
    let receiver = u32::try_from(call.args[0] as i32).ok().filter(|pid| *pid > 0);
    (number != 0).then_some((receiver, number))
}

/// Returns the path that a rename or unlink call removes.
fn removed_name(call: &Call) -> Option<&Untrusted> {
    match (&call.rename, call.op) {
        (Some(rename), _) => Some(&rename.from),
        (None, Op::Unlink | Op::Unlinkat) => call.paths.first(),
        _ => None,
    }
}
