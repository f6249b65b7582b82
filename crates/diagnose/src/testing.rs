//! Recordings for tests, built call by call.

use weir_model::trace::{
    BackendKind, Buffer, Call, Event, EventKind, Exit, HEAD_BYTES, Image, Op, OpenFile, Overhead, Prices,
    Process, Recording, RuntimeId, SnapshotMoment, StreamCounts, StreamTable,
};
use weir_model::{Direction, Finding, Mode, Severity, SourceLanguage, StreamKind};

use crate::run_advice::{PlannedRun, RunPlanner, RunProposal};

pub(crate) use weir_model::Direction::{In, Out};
pub(crate) use weir_model::StreamKind::{File, Pipe, Socket, Terminal};

pub(crate) fn diagnose(recording: &Recording) -> Vec<Finding> {
    crate::diagnose(recording, &TestPlanner).findings
}

pub(crate) fn verdict(recording: &Recording, findings: &[Finding]) -> crate::RunVerdict {
    crate::verdict::verdict(&crate::RuleContext::new(&StreamTable::of(recording), &TestPlanner), findings)
}

/// Accepts every option for every program but those of Go, Node and Ruby.
pub(crate) struct TestPlanner;

impl RunPlanner for TestPlanner {
    fn plan(&self, proposal: &RunProposal) -> Option<PlannedRun> {
        let refused = [Some(SourceLanguage::Go), Some(SourceLanguage::Node), Some(SourceLanguage::Ruby)];
        if proposal.programs.iter().any(|image| refused.contains(&image.language)) {
            return None;
        }
        let image = proposal.programs[0];
        let own = image.argv.iter().map(|word| word.exact().to_string());
        let command = if proposal.command.is_empty() { own.collect() } else { proposal.command.to_vec() };
        let directory = image.directory.as_ref().filter(|_| proposal.command.is_empty());
        let directory = directory.map(|directory| directory.exact().to_string());
        (!command.is_empty()).then_some(PlannedRun { command, directory })
    }
}

/// A recording under construction.
pub(crate) struct RecordingBuilder(pub Recording);

/// Begins the recording of a run of this length, with process 1 as the command.
pub(crate) fn recording(elapsed_s: f64) -> RecordingBuilder {
    let mut builder = RecordingBuilder(Recording {
        environment: Default::default(),
        memory_devices: Vec::new(),
        command: vec!["./prog".into(), "a b".into()],
        root: 1,
        backend: BackendKind::Ebpf,
        backend_reason: String::new(),
        exact: true,
        elapsed_s,
        exit: Some(Exit::Code(0)),
        overhead: Overhead::default(),
        blind: Vec::new(),
        incomplete: false,
        unreadable: Vec::new(),
        prices: Prices::default(),
        processes: Vec::new(),
        files: Vec::new(),
        counts: Vec::new(),
        events: Vec::new(),
        write_sites: Vec::new(),
        sampled_calls: Vec::new(),
        other_calls: Vec::new(),
    });
    builder.process(1, None, "prog");
    builder
}

impl RecordingBuilder {
    pub fn process(&mut self, pid: u32, parent: Option<u32>, comm: &str) -> &mut Process {
        let image = Image { exe: format!("/home/user/{comm}").into(), comm: comm.into(), ..c_image() };
        let ended_s = Some(self.0.elapsed_s);
        let exit = Some(Exit::Code(0));
        self.0.processes.push(Process {
            pid,
            parent,
            images: vec![image],
            ended_s,
            exit,
            ..Process::default()
        });
        self.0.processes.last_mut().unwrap()
    }

    /// Adds a child that process 1 forks at a time.
    pub fn fork(&mut self, at_s: f64, child: u32) -> &mut Process {
        self.event(at_s, 1, EventKind::Fork { child });
        let process = self.process(child, Some(1), "prog");
        process.started_s = at_s;
        process
    }

    pub fn exec(&mut self, at_s: f64, pid: u32, comm: &str) {
        let process = self.0.processes.iter_mut().find(|process| process.pid == pid).unwrap();
        let image = process.images.len() as u32;
        let exe = format!("/home/user/{comm}");
        process.images.push(Image { started_s: at_s, exe: exe.into(), comm: comm.into(), ..c_image() });
        self.event(at_s, pid, EventKind::Exec { image });
    }

    pub fn root(&mut self) -> &mut Process {
        &mut self.0.processes[0]
    }

    pub fn file(&mut self, path: &str, kind: StreamKind) -> u32 {
        let id = self.0.files.len() as u32;
        self.0.files.push(OpenFile {
            id,
            path: path.into(),
            kind,
            dev: 0,
            ino: 0,
            flags: 0o1101,
            opened_by: Some(1),
            block_bytes: 4096,
            size_bytes: None,
            pipe_bytes: None,
            direct_align: None,
            same_as: None,
        });
        id
    }

    pub fn open_file(&mut self, id: u32) -> &mut OpenFile {
        &mut self.0.files[id as usize]
    }

    /// Adds a stream with this many calls of one size, over the whole run.
    pub fn stream(
        &mut self,
        pid: u32,
        fd: i32,
        file: u32,
        direction: Direction,
        calls: u64,
        size: u64,
    ) -> &mut StreamCounts {
        let mut stream = StreamCounts::new(pid, 0, fd, file, direction);
        stream.last_s = self.0.elapsed_s;
        (stream.calls, stream.bytes, stream.max_requested_bytes) = (calls, calls * size, size);
        stream.sizes.add(size, calls);
        stream.requested_sizes.add(size, calls);
        self.0.counts.push(stream);
        self.0.counts.last_mut().unwrap()
    }

    pub fn event(&mut self, at_s: f64, pid: u32, kind: EventKind) {
        self.0.events.push(Event { at_s, pid, tid: pid, kind });
    }

    /// Adds a call that succeeded completely.
    pub fn call(&mut self, at_s: f64, pid: u32, op: Op, fd: i32, file: u32, head: &[u8]) -> &mut Call {
        let bytes = head.len() as u64;
        let call = Call {
            requested_bytes: bytes,
            head: head[..head.len().min(HEAD_BYTES)].into(),
            tail: head.last().copied(),
            ..Call::new(op, fd, Some(file), [fd as u64, 0x1000, bytes, 0, 0, 0], bytes as i64)
        };
        self.event(at_s, pid, EventKind::Call(call));
        match &mut self.0.events.last_mut().unwrap().kind {
            EventKind::Call(call) => call,
            _ => unreachable!(),
        }
    }

    pub fn write(&mut self, at_s: f64, pid: u32, fd: i32, file: u32, head: &[u8]) -> &mut Call {
        self.call(at_s, pid, Op::Write, fd, file, head)
    }

    pub fn read(&mut self, at_s: f64, pid: u32, fd: i32, file: u32, head: &[u8]) -> &mut Call {
        self.call(at_s, pid, Op::Read, fd, file, head)
    }

    pub fn rename(&mut self, at_s: f64, from: &str, to: &str) {
        let call = self.call(at_s, 1, Op::Rename, -1, 0, b"");
        (call.file, call.paths) = (None, vec![from.into(), to.into()]);
    }

    /// Returns the call that was added last.
    pub fn last_call(&mut self) -> &mut Call {
        match &mut self.0.events.last_mut().unwrap().kind {
            EventKind::Call(call) => call,
            other => panic!("{other:?}"),
        }
    }

    pub fn snapshot(&mut self, at_s: f64, pid: u32, moment: SnapshotMoment, buffers: &[Buffer]) {
        self.snapshot_in(at_s, pid, moment, "", buffers);
    }

    pub fn snapshot_in(
        &mut self,
        at_s: f64,
        pid: u32,
        moment: SnapshotMoment,
        waits_in: &str,
        buffers: &[Buffer],
    ) {
        let buffers = buffers.to_vec();
        self.event(
            at_s,
            pid,
            EventKind::Buffers {
                moment,
                buffers,
                waits_in: None,
                waits_in_name: waits_in.into(),
                files: Vec::new(),
                read_until_s: None,
            },
        );
    }

    /// Sets the time at which the memory of the latest snapshot had been read.
    pub fn read_until(&mut self, until_s: f64) {
        let snapshot = self.0.events.iter_mut().rev().find_map(|event| match &mut event.kind {
            EventKind::Buffers { read_until_s, .. } => Some(read_until_s),
            _ => None,
        });
        *snapshot.expect("there is a snapshot") = Some(until_s);
    }

    /// Returns the findings of one rule, before findings are merged.
    pub fn findings(&self, id: &str) -> Vec<Finding> {
        let streams = StreamTable::of(&self.0);
        let context = crate::context::RuleContext::new(&streams, &TestPlanner);
        let rule = crate::rules().iter().find(|rule| rule.id == id).unwrap();
        rule.apply(&context)
    }

    /// Returns the only finding of a rule and checks that it is complete.
    #[track_caller]
    pub fn finding(&self, id: &str) -> Finding {
        let mut found = self.findings(id);
        assert_eq!(found.len(), 1, "{found:#?}");
        let finding = found.remove(0);
        assert!(
            !finding.why.is_empty() && !finding.fix.is_empty() && !finding.evidence.is_empty(),
            "{finding:#?}"
        );
        assert!(!finding.why.contains("  ") && !finding.fix.contains("    "), "{finding:#?}");
        finding
    }

    #[track_caller]
    pub fn severity(&self, id: &str) -> Severity {
        self.finding(id).severity
    }

    #[track_caller]
    pub fn no_finding(&self, id: &str) {
        let found = self.findings(id);
        assert!(found.is_empty(), "{found:#?}");
    }
}

fn c_image() -> Image {
    Image { language: Some(SourceLanguage::C), ..Image::default() }
}

/// Returns a buffer with pending bytes.
pub(crate) fn pending(fd: i32, bytes: &[u8]) -> Buffer {
    Buffer {
        mode: Some(Mode::Full),
        buffer_bytes: 4096,
        pending_bytes: bytes.len() as u64,
        pending: bytes[..bytes.len().min(256)].into(),
        ..Buffer::empty(RuntimeId::GLIBC, 0x5000u64.wrapping_add_signed(fd.into()), fd)
    }
}

/// Returns a buffer with unread bytes.
pub(crate) fn unread(fd: i32, bytes: &[u8]) -> Buffer {
    Buffer {
        unread_bytes: bytes.len() as u64,
        unread: bytes[..bytes.len().min(64)].into(),
        ..pending(fd, b"")
    }
}
