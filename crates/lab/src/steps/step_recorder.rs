//! Makes steps from events: keeps the state of files and buffers, and copies it into a step at each event.

use std::collections::HashSet;

use weir_model::Untrusted;
use weir_model::lab::step::{ByteTransfer, LabStep, StepProcess};
use weir_model::trace::{Buffer, Event, EventKind, Exit, Image, Recording, SnapshotMoment};

use super::file_contents::{FileContents, is_command};
use super::streams::{self, BufferChange};
use super::{MAX_STEPS, sentences};

pub(super) struct StepRecorder<'r> {
    pub recording: &'r Recording,
    pub files: FileContents,
    pub processes: Vec<StepProcess>,
    steps: Vec<LabStep>,
    /// PIDs of shells that only start the program.
    hidden: HashSet<u32>,
    /// The files behind descriptors, from buffer snapshots.
    targets: Vec<((u32, i32), u32)>,
    /// Pending bytes that forks have copied.
    pub copied: u64,
    is_cut: bool,
}

impl<'r> StepRecorder<'r> {
    pub fn new(recording: &'r Recording) -> Self {
        let starter = recording.command.first().is_some_and(|word| word == "sh" || word.ends_with("/sh"));
        StepRecorder {
            recording,
            files: FileContents::of(recording),
            processes: Vec::new(),
            steps: Vec::new(),
            hidden: starter.then_some(recording.root).into_iter().collect(),
            targets: Vec::new(),
            copied: 0,
            is_cut: false,
        }
    }

    /// Returns the steps of the whole recording.
    pub fn steps(mut self) -> Vec<LabStep> {
        if !self.hidden.contains(&self.recording.root) {
            let name = self.recording.process(self.recording.root).map(|process| process.comm().to_string());
            self.begin(self.recording.root, name.unwrap_or_else(|| "?".into()));
        }
        for (at, event) in self.recording.events.iter().enumerate() {
            if self.steps.len() >= MAX_STEPS {
                self.is_cut = true;
                break;
            }
            self.event(at, event);
        }
        self.end();
        self.steps
    }

    fn event(&mut self, at: usize, event: &Event) {
        let pid = event.pid;
        match &event.kind {
            EventKind::Exec { image } => self.exec(at, pid, *image),
            EventKind::Fork { child } if self.hidden.contains(&pid) => {
                self.hidden.insert(*child);
            }
            EventKind::Fork { child } => self.fork(pid, *child),
            EventKind::Buffers { moment, buffers, waits_in_name, files, .. }
                if !self.hidden.contains(&pid) =>
            {
                self.targets.extend(files.iter().map(|(fd, file)| ((pid, *fd), *file)));
                self.buffers(pid, *moment, buffers, waits_in_name);
            }
            EventKind::Call(call) => self.call(at, pid, call),
            EventKind::Exit(exit) if !self.hidden.contains(&pid) => self.exit(pid, *exit),
            _ => {}
        }
    }

    /// Adds a step with a copy of the current state.
    pub fn step(&mut self, actor: u32, text: String, note: String, moved: Option<ByteTransfer>) {
        let actor = Some(actor);
        let (processes, files) = (self.processes.clone(), self.files.all.clone());
        self.steps.push(LabStep { text, note, actor, moved, processes, files });
        self.files.clear_added();
        let streams = self.processes.iter_mut().flat_map(|process| &mut process.streams);
        streams.for_each(|stream| stream.copied = false);
    }

    pub fn process(&mut self, pid: u32) -> Option<&mut StepProcess> {
        self.processes.iter_mut().find(|process| process.pid == pid)
    }

    fn begin(&mut self, pid: u32, name: String) {
        self.processes.push(StepProcess { pid, name, parent: None, ended: None, streams: Vec::new() });
    }

    fn exec(&mut self, at: usize, pid: u32, image: u32) {
        let Some(image) = self.recording.image(pid, image) else { return };
        let begins = !is_command(image, self.recording) && self.hidden.remove(&pid);
        if self.hidden.contains(&pid) {
            return;
        }
        if begins || self.process(pid).is_none() {
            self.begin(pid, image.comm.to_string());
            let text =
                format!("{} begins, as process {pid}.", sentences::base(&Untrusted::join(&image.argv, " ")));
            let note = sentences::box_of(self.has_buffers(at, pid));
            return self.step(pid, text, note.into(), None);
        }
        self.new_image(pid, image);
    }

    /// Returns whether a snapshot shows a buffer of the program that the process executes since event `at`.
    fn has_buffers(&self, at: usize, pid: u32) -> bool {
        let later = self.recording.events[at + 1..].iter().filter(|event| event.pid == pid);
        let mut of_program = later.take_while(|event| !matches!(event.kind, EventKind::Exec { .. }));
        of_program
            .any(|event| matches!(&event.kind, EventKind::Buffers { buffers, .. } if buffers.iter().any(streams::is_in_use)))
    }

    /// Drops the buffers of the old image; their pending bytes are lost.
    fn new_image(&mut self, pid: u32, image: &Image) {
        let Some(process) = self.process(pid) else { return };
        let (lost, unread) =
            (streams::pending(process), process.streams.iter().map(|one| one.unread.count).sum());
        process.streams.clear();
        process.name = image.comm.to_string();
        let text = format!(
            "{pid} executes another program: {}.",
            sentences::base(&Untrusted::join(&image.argv, " "))
        );
        self.step(pid, text, sentences::lost_at_exec(lost, unread), None);
    }

    fn fork(&mut self, pid: u32, child: u32) {
        let Some(parent) = self.process(pid) else { return };
        let (name, streams, pending) =
            (parent.name.clone(), streams::copied(parent), streams::pending(parent));
        self.processes.push(StepProcess { pid: child, name, parent: Some(pid), ended: None, streams });
        let of_parent = self.targets.iter().filter(|one| one.0.0 == pid).copied().collect::<Vec<_>>();
        self.targets.extend(of_parent.into_iter().map(|((_, fd), file)| ((child, fd), file)));
        self.copied += pending;
        self.step(pid, sentences::forks(pid, child, pending), sentences::copied(pending), None);
    }

    /// Applies a buffer snapshot; adds a step for each change.
    fn buffers(&mut self, pid: u32, moment: SnapshotMoment, buffers: &[Buffer], waits_in: &str) {
        let targets = self.targets.clone();
        let recording = self.recording;
        let target = |fd: i32| {
            let id = targets.iter().rev().find(|one| one.0 == (pid, fd)).map(|one| one.1);
            let file = id.and_then(|id| recording.file(id));
            let reads = fd == 0 || file.is_some_and(sentences::is_read_only);
            (file.map_or_else(|| format!("fd {fd}"), sentences::name), reads)
        };
        let Some(process) = self.process(pid) else { return };
        let changes = streams::apply(process, moment, buffers, target);
        for change in changes {
            let mode = self.process(pid).and_then(|process| {
                let stream = process.streams.iter().find(|stream| stream.fd == sentences::fd(&change))?;
                Some((stream.mode, stream.buffer_bytes))
            });
            let note = match change {
                BufferChange::Put { before, .. } => sentences::pending(mode, before, waits_in),
                BufferChange::Used { left: 0, .. } => String::new(),
                BufferChange::Used { .. } | BufferChange::ReadAhead { .. } => {
                    "They are in its memory: no other process can read them any more.".into()
                }
            };
            self.step(pid, sentences::change(pid, &change), note, None);
        }
    }

    fn exit(&mut self, pid: u32, exit: Exit) {
        let Some(process) = self.process(pid) else { return };
        let lost = streams::pending(process);
        let ending = sentences::exit(exit);
        process.ended = Some(ending.clone());
        process.streams.retain(|stream| stream.pending.count > 0);
        self.step(pid, format!("{pid} ends: {ending}."), sentences::lost_at_end(lost), None);
        if let Some(process) = self.process(pid) {
            process.streams.clear();
        }
    }

    /// Adds the last step, which summarises the result.
    fn end(&mut self) {
        let (text, note) = match self.is_cut {
            true => (
                format!("The run goes on; these are its first {MAX_STEPS} steps."),
                "Use a smaller run to see all steps.".into(),
            ),
            false => {
                ("All processes have ended.".to_string(), sentences::summary(&self.files.all, self.copied))
            }
        };
        let (processes, files) = (self.processes.clone(), self.files.all.clone());
        self.steps.push(LabStep { text, note, actor: None, moved: None, processes, files });
    }
}
