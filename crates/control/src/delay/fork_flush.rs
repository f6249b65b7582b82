//! What waits in a stream at a fork(2) comes once: it is brought out before the child or the parent goes on.

use crate::delay::write_ahead::{ThreadActivity, doing, forget_purged};
use crate::supervise::Tracees;
use crate::supervise::handler::LifecycleHandler;
use crate::supervise::tracee_file::TraceeFile;

/// Nothing doubles at a fork.
pub(crate) struct ForkHandler;

impl LifecycleHandler for ForkHandler {
    fn fork(&mut self, world: &mut Tracees, parent: u32, child: u32, shares_memory: bool) {
        if !shares_memory {
            if world.hold(parent) {
                bring_out(world, parent, child);
            }
            world.release(parent);
        }
    }
}

/// Both stand: the bytes are written once, and neither will write them.
fn bring_out(world: &mut Tracees, parent: u32, child: u32) {
    let Some(tid) = world.task(parent) else { return };
    let here = world.pending(parent, tid);
    forget_purged(world, parent, &here);
    if doing(world, parent) == ThreadActivity::Writing {
        return;
    }
    for one in world.pending(child, child) {
        let same = here.iter().any(|here| here.stream == one.stream && here.bytes == one.bytes);
        // Another thread may be inside the stream; its bytes are then left to the program, which doubles them.
        if !same || one.locked == Some(true) {
            continue;
        }
        let before = world.written.of(parent, one.stream, &one.bytes);
        let Some(sink) = TraceeFile::of(tid, one.fd).ok().filter(TraceeFile::takes_ahead) else { continue };
        let taken = before + sink.put(&one.bytes[before..]).0;
        world.written.bytes += (taken - before) as u64;
        for pid in [parent, child] {
            world.written.set(pid, one.stream, one.fd, &one.bytes[..taken]);
        }
    }
}
