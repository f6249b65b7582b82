//! The processes that are traced from the start: the command, or a running process and its descendants.

use weir_sys::clock::now_ns;
use weir_sys::process_access::check_answers;
use weir_sys::process_identity::ProcessIdentity;
use weir_sys::{Error, process_stat, process_status};
use weir_trace_api::{EventSink, RawEvent, RawEventKind};

use super::EbpfBackend;
use super::libraries;
use super::shared_types::{self, ProcessState};
use super::tracer_requests::TracerHandle;

/// How often to list the processes, which may create others before they are in the kernel's map. A list without new ones ends this.
const MAX_ROUNDS: usize = 50;

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
        let mut added = Vec::new();
        let mut processes = if is_command { vec![ProcessIdentity::of(root)] } else { running(root) };
        for _round in 0..MAX_ROUNDS {
            let start = now_ns();
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
            processes = if is_command { Vec::new() } else { self.unknown_processes(root, &added) };
            if processes.is_empty() {
                break;
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

    /// Returns the descendants that a process created before it was in the kernel's map. The kernel programs follow the later ones.
    fn unknown_processes(&self, root: u32, added: &[u32]) -> Vec<ProcessIdentity> {
        let is_known = |pid: u32| added.contains(&pid) || self.loaded.processes.get(&pid, 0).is_ok();
        // The kernel programs have removed a process that they followed and that exits.
        let exits = |pid: u32| process_stat::read(pid).is_none_or(|stat| stat.is_exiting);
        running(root).into_iter().filter(|one| !is_known(one.pid()) && !exits(one.pid())).collect()
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
