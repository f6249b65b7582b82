//! The processes that are traced from the start: the command, or a running process and its descendants.

use weir_sys::clock::now_ns;
use weir_sys::process_access::check_answers;
use weir_sys::process_identity::ProcessIdentity;
use weir_sys::{Error, process_status};
use weir_trace_api::{EventSink, RawEvent, RawEventKind};

use super::EbpfBackend;
use super::libraries;
use super::shared_types::{self, ProcessState};
use super::tracer_requests::TracerHandle;

impl EbpfBackend {
    /// Announces the processes that are traced from the start, and returns them. Adds them to the kernel's map unless the
    /// root is a command, which is in the map already.
    pub(super) fn add_processes(
        &mut self,
        root: u32,
        is_command: bool,
        sink: &mut EventSink<'_>,
        tracer: &TracerHandle,
    ) -> Result<Vec<u32>, Error> {
        let processes = if is_command { vec![ProcessIdentity::of(root)] } else { running(root) };
        let start = now_ns();
        let mut added = Vec::new();
        for process in processes {
            let pid = process.pid();
            if !is_command {
                self.add_running(pid)?;
            }
            // The kernel programs forget a process at its end, but only one that they know.
            if pid != root && !process.is_current() {
                self.loaded.remove_process(pid);
                continue;
            }
            added.push(pid);
            sink(RawEvent { ns: start, pid, tid: pid, kind: RawEventKind::Begin });
            if let Some(before) = self.first_totals.read(pid, is_command) {
                sink(RawEvent { ns: start, pid, tid: pid, kind: RawEventKind::Totals(before) });
            }
        }
        if !is_command {
            self.loaded.attach_calls()?;
            // Also the processes that these have created meanwhile, which the kernel programs follow.
            let stoppable = running(root).into_iter().map(|one| one.pid()).filter(|&pid| !is_own_child(pid));
            stoppable.for_each(|pid| tracer.check_running(pid));
            tracer.settle();
        }
        Ok(added)
    }

    fn add_running(&mut self, pid: u32) -> Result<(), Error> {
        let (list, walker) = libraries::list_of(pid);
        self.add(pid, ProcessState { list, walker, ..ProcessState::EMPTY })
    }

    /// Adds a command at its gate. `command` is a value of `enum command_state`.
    pub(super) fn add_gated(&mut self, pid: u32, command: u32) -> Result<(), Error> {
        self.add(pid, ProcessState { image: shared_types::IMAGE_GATED, command, ..ProcessState::EMPTY })
    }

    fn add(&mut self, pid: u32, state: ProcessState) -> Result<(), Error> {
        self.loaded.add_process(pid, state).map_err(|error| Error::Backend {
            backend: "ebpf",
            reason: format!("process {pid} cannot be added to the traced processes: {error}"),
        })
    }
}

/// Returns a running process, and those of its descendants whose memory can be read without waiting for ever.
fn running(root: u32) -> Vec<ProcessIdentity> {
    let root = ProcessIdentity::of(root);
    let descendants = root.descendants().into_iter();
    // weir itself is one of them where its shell is traced.
    let others = descendants.filter(|one| one.pid() != std::process::id());
    std::iter::once(root).chain(others.filter(|one| check_answers(one.pid()).is_ok())).collect()
}

/// Returns whether a process is weir's own child. The tracer might have to wait for the child while the child waits for the tracer.
fn is_own_child(pid: u32) -> bool {
    process_status::read(pid).is_some_and(|status| status.parent == std::process::id())
}
