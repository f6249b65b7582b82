//! The threads of the models that flush the streams of others: exit, fork, flush and close.

use super::machine::{Address, Op, Operand, Test};
use super::program::{Assembler, Label, Program};
use super::rules::{Options, Rule};
use super::steps::*;
use super::threads::exchange;
use Operand::{Of, Value};

/// weir__ref_next of the only stream; goes to `without` if the registry does not have it.
fn reference(a: &mut Assembler, options: &Options, me: usize, without: Label) {
    let (none, done) = (a.label(), a.label());
    let locked = options.has(Rule::ReferenceLocked);
    if locked {
        lock(a, options, REGISTRY, me, false);
    }
    a.c("registry.c", "weir__ref_next");
    a.load(AT, SLOT, "weir_stream *s = weir__next_stream(slot)");
    a.branch(AT, Test::Same, Value(0), none);
    a.op(Op::FetchAdd { at: REFS, delta: 1 }, "atomic_fetch_add(&weir__state(s)->refs, 1)");
    if locked {
        unlock(a, options, REGISTRY);
    }
    a.jump(done);
    a.bind(none);
    if locked {
        unlock(a, options, REGISTRY);
    }
    a.jump(without);
    a.bind(done);
}

fn unreference(a: &mut Assembler) {
    a.c("registry.c", "weir__unref");
    a.op(Op::FetchAdd { at: REFS, delta: -1 }, "atomic_fetch_sub(&weir__state(s)->refs, 1)");
}

/// weir__enter_for_flush of a stream that other threads use; goes to `skipped` if exit leaves it alone.
fn enter_for_flush(a: &mut Assembler, options: &Options, me: usize, skipped: Label) {
    if !options.threads && options.has(Rule::SetLocking) {
        a.c("private.h", "weir__set_locking");
        a.store(LOCKING, Value(1), "__atomic_store_n(&weir__state(s)->locking, true, __ATOMIC_RELEASE)");
    }
    if !options.has(Rule::WaitDespiteIdle) {
        let (busy, locked) = (a.label(), a.label());
        try_lock(a, LOCK, me, busy);
        a.jump(locked);
        a.bind(busy);
        a.c("ending.c", "has_pending");
        a.load(UPTO, WRITTEN, "weir__pending(s)");
        a.load(AT, DRAINED, "weir__pending(s)");
        a.branch(AT, Test::Same, Of(UPTO), skipped);
        lock(a, options, LOCK, me, true);
        a.bind(locked);
    } else {
        lock(a, options, LOCK, me, true);
    }
    if options.threads || !options.has(Rule::WaitForCall) {
        return;
    }
    let (again, done) = (a.here(), a.label());
    a.c("lock.c", "weir__membarrier_all");
    if options.has(Rule::ExitBarrier) {
        a.op(Op::Membarrier, "syscall(SYS_membarrier, BARRIER_PRIVATE_EXPEDITED, 0, 0)");
    }
    a.c("ending.c", "enter_unshared");
    let acquire = options.has(Rule::CallAcquire);
    let load = Op::Load { to: TEMP, at: Address::Fixed(IN_CALL), acquire };
    a.op(load, "!atomic_load(&state->in_call)");
    a.branch(TEMP, Test::Same, Value(0), done);
    a.jump(again);
    a.bind(done);
}

/// weir__flush_in_place.
fn flush_in_place(a: &mut Assembler, options: &Options) {
    if options.threads || !options.has(Rule::NoForeignReset) {
        drain(a, options); // weir__flush_held
        return;
    }
    a.c("ending.c", "weir__flush_in_place");
    load_published(a, options);
    write_out(a, options);
}

/// Work of exit besides its flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Besides {
    /// Nothing: the stream is never closed, and no thread forks.
    Nothing,
    /// It takes the stream from the registry each time.
    Registry,
    /// The same, and a thread forks.
    Fork {
        /// The number of the thread.
        thread: usize,
        /// It locks the stream.
        kept: bool,
    },
}

/// weir__at_exit, hold_streams and the end of the process.
pub fn exit(me: usize, options: &Options, besides: Besides) -> Program {
    let registry = besides != Besides::Nothing;
    let mut assembler = Assembler::new("exit");
    let a = &mut assembler;
    a.c("ending.c", "weir__at_exit");
    a.load(SNAPSHOT, ACCEPTED, "");
    let (flushed, skipped, held, not_held) = (a.label(), a.label(), a.label(), a.label());
    if registry {
        reference(a, options, me, flushed);
    }
    enter_for_flush(a, options, me, skipped);
    flush_in_place(a, options);
    a.c("ending.c", "make_unbuffered");
    a.store(MODE, Value(1), "weir__config(s)->mode = WEIR_NONE");
    set_limits(a, options, false);
    if !options.threads {
        flush_in_place(a, options);
    }
    unlock(a, options, LOCK);
    a.bind(skipped);
    if registry {
        unreference(a);
    }
    a.bind(flushed);
    if let Besides::Fork { thread, kept } = besides {
        end_fork(a, options, thread, kept);
    }
    if options.has(Rule::HoldAtEnd) {
        if registry {
            reference(a, options, me, held);
        }
        enter_for_flush(a, options, me, not_held);
        flush_in_place(a, options);
        a.bind(not_held);
        if registry {
            unreference(a);
        }
        a.bind(held);
        if registry {
            lock(a, options, REGISTRY, me, true);
        }
    }
    a.c("ending.c", "hold_streams");
    a.op(Op::ExitGroup, "atomic_store(&globals->holder, weir__this_thread())");
    assembler.finish()
}

/// weir_flush_all in a thread that does not use the stream otherwise.
pub fn flush_all(me: usize, options: &Options, registry: bool) -> Program {
    let mut assembler = Assembler::new("flush_all");
    let a = &mut assembler;
    let (done, skipped) = (a.label(), a.label());
    if registry {
        reference(a, options, me, done);
    }
    enter_for_flush(a, options, me, skipped);
    flush_in_place(a, options);
    unlock(a, options, LOCK);
    a.bind(skipped);
    if registry {
        unreference(a);
    }
    a.bind(done);
    assembler.finish()
}

/// fork(2) of a `WEIR_FORK_FLUSH` stream, or `kept`: of a `WEIR_FORK_KEEP` stream.
pub fn fork(me: usize, options: &Options, kept: bool) -> Program {
    let mut assembler = Assembler::new("fork");
    let a = &mut assembler;
    let (flushed, skipped) = (a.label(), a.label());
    a.c("process.c", "before_fork");
    a.load(SNAPSHOT, ACCEPTED, "");
    reference(a, options, me, flushed);
    if !kept && options.has(Rule::ForkFlush) {
        enter_for_flush(a, options, me, skipped);
        flush_in_place(a, options);
        unlock(a, options, LOCK);
    }
    a.bind(skipped);
    unreference(a);
    a.bind(flushed);
    let locks = kept && options.has(Rule::ForkLock);
    if locks && !options.has(Rule::StreamBeforeRegistry) {
        lock(a, options, REGISTRY, me, false);
        lock(a, options, LOCK, me, true);
    } else {
        if locks {
            lock_kept(a, options, me);
        }
        lock(a, options, REGISTRY, me, false);
    }
    let (ended, after) = (a.label(), a.label());
    a.c("process.c", "before_fork");
    exchange(a, FORKING, 1, "atomic_store(&weir__globals->forking, weir__this_thread())");
    if options.has(Rule::LookForEnd) {
        a.load(TEMP, HOOKS_END, "if (atomic_load(&weir__globals->hooks_end))");
        a.branch(TEMP, Test::Same, Value(1), after);
    }
    a.op(Op::Fork, "");
    exchange(a, AFTER_FORK, 1, "");
    a.load(TEMP, HOOKS_END, "");
    a.branch(TEMP, Test::Same, Value(1), ended); // without a hook
    a.bind(after);
    a.c("process.c", "after_fork_in_parent");
    let text = "!atomic_compare_exchange_strong(&weir__globals->forking, &self, 0)";
    a.op(
        Op::CompareExchange { at: FORKING, expected: 1, new: 0, ok: OK, acquire: true, release: true },
        text,
    );
    a.branch(OK, Test::Differs, Value(1), ended);
    if locks {
        unlock(a, options, LOCK);
    }
    unlock(a, options, REGISTRY);
    a.bind(ended);
    assembler.finish()
}

/// weir__end_fork. `kept`: the number of the thread in fork, if it locks the stream.
fn end_fork(a: &mut Assembler, options: &Options, forking: usize, kept: bool) {
    a.c("process.c", "weir__end_fork");
    exchange(a, HOOKS_END, 1, "atomic_store(&weir__globals->hooks_end, true)");
    if !options.has(Rule::EndFork) {
        return;
    }
    let (wait, release, done) = (a.here(), a.label(), a.label());
    a.load(TEMP, FORKING, "i < TIMES && atomic_load(&weir__globals->forking)");
    a.branch(TEMP, Test::Same, Value(0), done);
    a.load(TEMP, AFTER_FORK, "");
    a.branch(TEMP, Test::Same, Value(0), wait);
    a.choose(wait, "i < TIMES");
    a.bind(release);
    let take = Op::CompareExchange { at: FORKING, expected: 1, new: 0, ok: OK, acquire: true, release: true };
    a.op(take, "uintptr_t forking = atomic_exchange(&weir__globals->forking, 0)");
    a.branch(OK, Test::Same, Value(0), done);
    let of_stream = if kept { Some(LOCK) } else { None };
    for lock in of_stream.into_iter().chain([REGISTRY]) {
        let next = a.label();
        a.c("process.c", "release_of");
        let op = Op::CompareExchange {
            at: lock.owner,
            expected: forking as u8 + 1,
            new: 0,
            ok: OK,
            acquire: true,
            release: true,
        };
        a.op(op, "atomic_compare_exchange_strong(&lock->owner, &thread, 0)");
        a.branch(OK, Test::Same, Value(0), next);
        a.load(TEMP, lock.waiters, "atomic_load(&lock->waiters)");
        a.branch(TEMP, Test::Same, Value(0), next);
        a.c("lock.c", "weir__lock_release_slow");
        a.op(Op::FutexWake { at: lock.owner, count: TEMP, all_from: 1 }, "syscall(SYS_futex, futex_of(lock)");
        a.bind(next);
    }
    a.bind(done);
}

/// The locks of the `WEIR_FORK_KEEP` streams before a fork, without the registry's.
fn lock_kept(a: &mut Assembler, options: &Options, me: usize) {
    let gone = a.label();
    reference(a, options, me, gone);
    lock(a, options, LOCK, me, true);
    unreference(a);
    a.bind(gone);
}

/// A thread that uses the registry between weir_lock and weir_unlock, as weir_open does.
pub fn open_with_lock(me: usize, options: &Options) -> Program {
    let mut assembler = Assembler::new("opener");
    let a = &mut assembler;
    lock(a, options, LOCK, me, false);
    lock(a, options, REGISTRY, me, false);
    unlock(a, options, REGISTRY);
    unlock(a, options, LOCK);
    assembler.finish()
}

/// The owner of a shared stream closes it after some lines.
pub fn close(a: &mut Assembler, me: usize, options: &Options) {
    lock(a, options, LOCK, me, false);
    drain(a, options);
    unlock(a, options, LOCK);
    lock(a, options, REGISTRY, me, false);
    a.c("registry.c", "weir__unregister");
    let text = "atomic_store(&atomic_load(&chunks[slot / CHUNK_SLOTS])->slot[slot % CHUNK_SLOTS], NULL)";
    a.op(Op::CompareExchange { at: SLOT, expected: 1, new: 0, ok: OK, acquire: true, release: true }, text);
    unlock(a, options, REGISTRY);
    if options.has(Rule::CloseWaitsForTimer) {
        let again = a.here();
        a.c("stale.c", "weir__stale_wait");
        a.load(TEMP, TIMER_STREAM, "atomic_load(&weir__globals->timer_stream) == s");
        a.branch(TEMP, Test::Same, Value(1), again);
    }
    if options.has(Rule::CloseWaitsForReferences) {
        let again = a.here();
        a.c("registry.c", "wait_for_refs");
        a.load(TEMP, REFS, "while (atomic_load(&state->refs))");
        a.branch(TEMP, Test::Differs, Value(0), again);
    }
    a.c("stream.c", "free_memory");
    a.op(Op::Free, "weir__kernel.munmap(s, all_bytes())");
}

/// pthread_cancel(3) of another thread.
pub fn canceller(of: u8) -> Program {
    let mut assembler = Assembler::new("canceller");
    assembler.op(Op::Cancel { thread: of }, "");
    assembler.finish()
}
