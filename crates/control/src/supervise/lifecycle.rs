//! Births, changes of image and deaths, and whom it does not work for.

use weir_model::trace::Exit;
use weir_sys::clock::now_ns;
use weir_sys::launch::GatedCommand;
use weir_sys::proc;
use weir_sys::ptrace::{self, registers};

#[cfg(target_arch = "x86_64")]
use crate::delay::skip::SkippedCall;
use crate::rescue::last_write;
#[cfg(target_arch = "x86_64")]
use crate::rescue::replay::KilledThread;
use crate::supervise::event_loop::Supervisor;
use crate::supervise::tracees::{ThreadState, TracedProcess, TracedThread};

impl Supervisor {
    /// fork(2), vfork(2) or clone(2): the parent is stopped, and the child has not run.
    pub(crate) fn on_birth(&mut self, tid: u32, event: i32) {
        let Some(pid) = self.world.threads.get(&tid).map(|thread| thread.pid) else { return };
        let child = ptrace::message(tid).unwrap_or(0) as u32;
        if child != 0 && !self.world.threads.contains_key(&child) {
            let same = event == libc::PTRACE_EVENT_CLONE
                && proc::status(child).is_none_or(|status| status.tgid as u32 == pid);
            match same {
                true => self.add_thread(pid, child),
                false => self.born(pid, tid, child, event == libc::PTRACE_EVENT_VFORK),
            }
            self.handle_early(child);
        }
        self.world.go_on(tid, 0);
    }

    fn born(&mut self, parent: u32, tid: u32, child: u32, vforked: bool) {
        let shares_memory = vforked || ptrace::share_memory(tid, child);
        let owner = self.world.processes.get(&parent).map_or(parent, |process| process.owner);
        let mut process = TracedProcess::new(if shares_memory { owner } else { child });
        process.hidden = self.world.processes.get(&parent).is_some_and(|process| process.hidden);
        process.vforked_by = vforked.then_some(parent);
        let hidden = process.hidden;
        self.world.processes.insert(child, process);
        self.add_thread(child, child);
        if !shares_memory {
            self.world.inherit(owner, child);
        }
        if !hidden {
            self.each(|follower, world| follower.fork(world, parent, child, shares_memory));
        }
    }

    pub(crate) fn add_thread(&mut self, pid: u32, tid: u32) {
        self.world.threads.insert(tid, TracedThread { pid, ..TracedThread::default() });
        if let Some(process) = self.world.processes.get_mut(&pid) {
            process.threads.insert(tid);
        }
    }

    /// Its first stop may have come before the event that says whose it is.
    fn handle_early(&mut self, child: u32) {
        if let Some((stop, _)) = self.world.early.remove(&child) {
            self.on_stop(stop);
        }
    }

    /// A new child whose parent died before it could say so.
    pub(crate) fn adopt(&mut self, child: u32) {
        let status = proc::status(child);
        let pid = status.as_ref().map_or(child, |status| status.tgid as u32);
        let parent = status.map_or(0, |status| status.ppid as u32);
        if self.world.processes.contains_key(&pid) {
            self.add_thread(pid, child);
        } else if self.world.processes.contains_key(&parent) {
            self.born(parent, parent, pid, false);
        } else {
            self.world.processes.insert(pid, TracedProcess::new(pid));
            self.add_thread(pid, child);
        }
        self.handle_early(child);
    }

    /// A new image. Other threads are gone, and the one that asked for it has the process's number now.
    pub(crate) fn on_exec(&mut self, tid: u32) {
        let former = ptrace::message(tid).map_or(tid, |former| former as u32);
        self.world.threads.remove(&former);
        let Some(process) = self.world.processes.get_mut(&tid) else { return ptrace::resume(tid, false, 0) };
        for gone in std::mem::take(&mut process.threads) {
            self.world.threads.remove(&gone);
        }
        process.renew();
        (process.owner, process.vforked_by, process.hidden) = (tid, None, false);
        self.add_thread(tid, tid);
        if let Some(thread) = self.world.threads.get_mut(&tid) {
            thread.state = ThreadState::Stopped;
        }
        self.world.written.forget(tid);
        if tid == self.world.root {
            self.gated = None;
        }
        self.each(|follower, world| follower.exec(world, tid));
        let label = || proc::label(tid);
        if proc::foreign(tid) {
            let known = "is a program of 32 bits: what waits in its streams is not known";
            self.world.say(format!("{} {known}", label()));
        }
        if proc::loses_privilege(tid) {
            let why = "is set-user-ID or set-group-ID and ran without that privilege, as under every tracer without it";
            self.world.say(format!("{} {why}: run weir as root, or this program outside of it", label()));
        }
        self.world.go_on(tid, 0);
    }

    /// A thread is about to end; its memory and descriptors are there still.
    pub(crate) fn on_exit(&mut self, tid: u32) {
        let status = ptrace::message(tid).unwrap_or(0) as i32;
        let Some(thread) = self.world.threads.get_mut(&tid) else { return };
        thread.ending = true;
        let pid = thread.pid;
        let last = last_write::last(tid, thread.inside.as_ref());
        #[cfg(target_arch = "x86_64")]
        let torn = torn(tid, thread.inside.as_ref(), last.as_ref());
        let Some(process) = self.world.processes.get_mut(&pid) else { return self.world.go_on(tid, 0) };
        process.lasts.extend(last);
        #[cfg(target_arch = "x86_64")]
        process.torn.extend(torn);
        process.stacks.extend(registers::stack(tid));
        let (own, hidden) = (process.owner == pid, process.hidden);
        if own && !hidden && self.world.task(pid).is_none() {
            self.ends(pid, tid, status, 0);
        } else {
            self.world.go_on(tid, 0);
        }
    }

    /// The end of the last thread, from the follower with this number on.
    pub(crate) fn ends(&mut self, pid: u32, tid: u32, status: i32, from: usize) {
        let mut followers = std::mem::take(&mut self.followers);
        let waits =
            followers.iter_mut().enumerate().skip(from).find_map(|(at, follower)| {
                (!follower.exits(&mut self.world, pid, tid, status)).then_some(at)
            });
        self.followers = followers;
        match waits {
            Some(at) => self.ending.push((pid, tid, status, at)),
            None => self.world.go_on(tid, 0),
        }
    }

    /// Those that were to wait for their end are asked again.
    pub(crate) fn go_on_ending(&mut self) {
        for (pid, tid, status, from) in std::mem::take(&mut self.ending) {
            self.ends(pid, tid, status, from);
        }
    }

    /// A thread has ended, and with its leader the process.
    pub(crate) fn gone(&mut self, tid: u32, status: i32) {
        self.world.early.remove(&tid);
        self.ending.retain(|one| one.1 != tid);
        let Some(thread) = self.world.threads.remove(&tid) else { return };
        if let Some(process) = self.world.processes.get_mut(&thread.pid) {
            process.threads.remove(&tid);
        }
        if tid != thread.pid {
            return;
        }
        self.each(|follower, world| follower.gone(world, tid));
        self.world.written.forget(tid);
        self.world.processes.remove(&tid);
        if tid == self.world.root {
            self.exit = Some(Exit::of_status(status));
        }
    }

    pub(crate) fn adopt_those_waiting(&mut self) {
        const EARLY_NS: u64 = 20_000_000;
        let old = |since: u64| now_ns() >= since + EARLY_NS;
        let lost: Vec<u32> =
            self.world.early.iter().filter(|early| old(early.1.1)).map(|early| *early.0).collect();
        for child in lost {
            self.adopt(child);
        }
    }
}

/// A thread that was killed, as it would have come back from a call of which a part was skipped.
#[cfg(target_arch = "x86_64")]
fn torn(
    tid: u32,
    inside: Option<&SkippedCall>,
    last: Option<&last_write::LastWrite>,
) -> Option<KilledThread> {
    let torn = KilledThread::of(tid)?;
    match (inside, last) {
        (Some(inside), Some(last_write::LastWrite::Wrote { bytes, .. })) => inside.came_back(torn, *bytes),
        _ => Some(torn),
    }
}

/// Why this command should not be followed, where its file tells.
pub(crate) fn unfit(gated: &GatedCommand) -> Option<String> {
    let path = gated.executable()?;
    if proc::file_loses_privilege(&path) {
        return Some(format!(
            "{} is set-user-ID or set-group-ID and would lose that while it is followed: run weir as root",
            path.display()
        ));
    }
    proc::file_is_foreign(&path)
        .then(|| format!("{} is a program of 32 bits: nothing is known of its streams", path.display()))
}
