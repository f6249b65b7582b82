//! Fork, exec and exit: creates the recording's processes, copies descriptor tables to children, and closes a
//! process with its totals and times.

use std::sync::{Arc, Mutex, PoisonError};

use foldhash::HashSet;
use weir_model::Untrusted;
use weir_model::trace::{EventKind, Exit, Image, IoTotals, Process};
use weir_sys::proc::{self, ResourceUsage};
use weir_trace_api::MAX_ARGUMENT_BYTES;

use super::LiveProcess;
use crate::{Recorder, fd_revalidation};

impl Recorder {
    pub(super) fn new_process(&mut self, pid: u32, parent: Option<u32>, at_s: f64) -> usize {
        let image = match parent.and_then(|parent| self.live.get(&parent)) {
            Some(parent) => self.processes[parent.process].images.last().cloned().unwrap_or_default(),
            None => image_of(pid),
        };
        let images = vec![Image { started_s: at_s, ..image }];
        self.processes.push(Process { pid, parent, images, started_s: at_s, ..Process::default() });
        self.processes.len() - 1
    }

    pub(super) fn fork(&mut self, pid: u32, tid: u32, child: u32, shares_files: bool, at_s: f64) {
        self.live_process(pid, at_s);
        let table = Arc::clone(&self.live_process(pid, at_s).descriptors);
        let table = if shares_files {
            table
        } else {
            let mut copy = table.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if self.in_global_gap || self.live_process(pid, at_s).gaps.in_gap() {
                fd_revalidation::mark_stale(&mut copy);
            }
            Arc::new(Mutex::new(copy))
        };
        let process = self.new_process(child, Some(pid), at_s);
        // The kernel's counters of a new process begin at 0, even if their first report comes late.
        let totals_at_start = Some(IoTotals::default());
        self.live.insert(
            child,
            LiveProcess { process, descriptors: table, totals_at_start, ..LiveProcess::default() },
        );
        self.files.directories.fork(pid, child);
        self.live_process(pid, at_s).writes_after_fork = 0;
        self.push_event(at_s, pid, tid, EventKind::Fork { child });
    }

    pub(super) fn exec(&mut self, pid: u32, tid: u32, image: Image) {
        let at_s = image.started_s;
        // The image before the command's first execve(2) is weir's own and is not recorded.
        let becomes_command = self.command.take_if(|command| *command == pid).is_some();
        let live = self.live_process(pid, at_s);
        live.image += u32::from(!becomes_command);
        live.writes_after_fork = 0;
        let (number, process) = (live.image, live.process);
        // The kernel gives the process a table of its own (begin_new_exec() in fs/exec.c), so the others keep their descriptors.
        if Arc::strong_count(&live.descriptors) > 1 {
            let own = live.descriptors.lock().unwrap_or_else(PoisonError::into_inner).clone();
            live.descriptors = Arc::new(Mutex::new(own));
        }
        self.with_table(pid, |table, files| {
            // Descriptors from a gap may have close-on-exec set, so they are read again.
            if !files.kernel_reports_files && table.values().any(|descriptor| descriptor.stale) {
                fd_revalidation::refresh(table, files, pid);
            }
            table.retain(|_, descriptor| !descriptor.close_on_exec);
        });
        let mut image = image;
        image.directory = self.files.directories.start_of_image(pid);
        if image.exe.exact().starts_with("/proc/self") || !image.exe.exact().starts_with('/') {
            let known = Some(image_of(pid).exe).filter(|exe| !exe.is_empty());
            // The process has ended: its path is relative to its last known directory.
            let by_name = || self.files.directories.absolute(pid, image.exe.exact());
            image.exe = known.or_else(by_name).unwrap_or_default();
        }
        complete_arguments(&mut image, || image_of(pid).argv);
        let images = &mut self.processes[process].images;
        images.truncate(number as usize);
        images.push(image);
        self.push_event(at_s, pid, tid, EventKind::Exec { image: number });
    }

    pub(super) fn exit(
        &mut self,
        pid: u32,
        exit: Exit,
        io: Option<IoTotals>,
        usage: &ResourceUsage,
        at_s: f64,
    ) {
        self.live_process(pid, at_s);
        let Some(live) = self.live.remove(&pid) else { return };
        self.files.directories.exit(pid);
        if matches!(exit, Exit::Signal(_)) {
            let table = live.descriptors.lock().unwrap_or_else(PoisonError::into_inner);
            let open = table.iter().map(|(&fd, descriptor)| (fd, descriptor.file)).collect();
            self.open_at_kill.insert(pid, open);
        }
        self.close_files(&live);
        let process = &mut self.processes[live.process];
        process.ended_s = Some(at_s);
        process.exit = Some(exit);
        let seconds = |ns: u64| ns as f64 / 1e9;
        (process.user_s, process.system_s) = (seconds(usage.user_ns), seconds(usage.system_ns));
        (process.queued_s, process.fetched_bytes) = (usage.queued_ns.map(seconds), usage.fetched_bytes);
        self.settle_process(live, io, at_s);
        self.push_event(at_s, pid, pid, EventKind::Exit(exit));
    }

    /// Forgets the keys of the files that only this process had open. Its exit closes them, also in a gap.
    fn close_files(&mut self, exited: &LiveProcess) {
        let ids = |live: &LiveProcess| -> Vec<u32> {
            let table = live.descriptors.lock().unwrap_or_else(PoisonError::into_inner);
            table.values().map(|descriptor| descriptor.file).collect()
        };
        let mut closed: HashSet<u32> = ids(exited).into_iter().filter(|&id| self.files.has_key(id)).collect();
        for other in self.live.values() {
            if closed.is_empty() {
                break;
            }
            let held = ids(other);
            closed.retain(|id| !held.contains(id));
        }
        closed.into_iter().for_each(|id| self.files.forget_key(id));
    }
}

/// Takes the arguments that /proc has if the backend has none or may have cut them. /proc has none of an exited process,
/// and others after a further execve(2).
fn complete_arguments(image: &mut Image, read: impl FnOnce() -> Vec<Untrusted>) {
    let bytes: usize = image.argv.iter().map(|word| word.exact().len() + 1).sum();
    if image.argv.is_empty() {
        image.argv = read();
    } else if bytes >= MAX_ARGUMENT_BYTES {
        let (read, known) = (read(), image.argv.len() - 1);
        let same = read.len() > known && read[..known] == image.argv[..known];
        match same && read[known].exact().starts_with(image.argv[known].exact()) {
            true => image.argv = read,
            false => image.argv_cut = true,
        }
    }
}

/// Reads the image of a process from /proc. Fields are empty where /proc has no answer.
fn image_of(pid: u32) -> Image {
    let (exe, comm, argv) = proc::names(pid);
    let directory = proc::directory(pid).map(Untrusted::of_os);
    Image { exe, comm, argv, directory, ..Image::default() }
}

#[cfg(test)]
mod tests {
    use weir_model::trace::Op;
    use weir_trace_api::{RawCall, RawEvent, RawEventKind};

    use super::*;

    /// A child of clone(2) with CLONE_FILES.
    #[test]
    fn an_execve_closes_no_descriptor_of_a_process_that_shared_its_table() {
        const PARENT: u32 = 4_194_305; // above the kernel's largest PID
        const CHILD: u32 = PARENT + 1;
        let mut recorder = Recorder::new(0, true);
        let mut record = |ns, pid, kind| recorder.record(RawEvent { ns, pid, tid: pid, kind });
        let flags = libc::O_WRONLY | libc::O_CLOEXEC;
        let open = RawCall::new(Op::Openat, [0, 0, flags as u64, 0, 0, 0], 3);
        record(10, PARENT, RawEventKind::Call(RawCall { paths: vec!["/d/log".into()], ..open }));
        record(20, PARENT, RawEventKind::Fork { child: CHILD, shares_files: true });
        let exec = RawEventKind::Exec { exe: "/bin/true".into(), comm: "true".into(), argv: Vec::new() };
        record(30, CHILD, exec);
        for (ns, pid) in [(40, PARENT), (50, CHILD)] {
            record(ns, pid, RawEventKind::Call(RawCall::new(Op::Write, [3, 0, 5, 0, 0, 0], 5)));
        }
        let output = recorder.finish();
        let written = |pid| {
            let stream = output.streams.iter().find(|stream| stream.pid == pid).expect("a stream");
            output.files[stream.file as usize].path.exact().to_string()
        };
        assert_eq!((written(PARENT).as_str(), written(CHILD).as_str()), ("/d/log", "descriptor 3"));
    }

    #[test]
    fn cut_arguments_are_completed_or_marked() {
        let words = |last: &str| vec![Untrusted::from("cc"), "x".repeat(300).into(), last.into()];
        let image = |read: Vec<Untrusted>| {
            let mut image = Image { argv: words("lo"), ..Image::default() };
            complete_arguments(&mut image, || read);
            (image.argv, image.argv_cut)
        };
        assert_eq!(image(words("long")), (words("long"), false));
        assert_eq!(image(Vec::new()), (words("lo"), true), "the process has ended");
        assert_eq!(image(words("other")), (words("lo"), true), "the process has executed another program");
        let mut short = Image { argv: vec!["cc".into()], ..Image::default() };
        complete_arguments(&mut short, || unreachable!("they are complete"));
        assert_eq!((short.argv.len(), short.argv_cut), (1, false));
    }
}
