//! The C functions of the lock, the buffer and the write loop as steps. Each step quotes the code that it stands for.

use super::machine::{Address, Cell, Op, Operand, Register, Test};
use super::program::{Assembler, Label};
use super::promises::first_byte;
use super::rules::{Options, Rule};
use Operand::{Of, Value};

/// The cells. Those before [`FIRST_OF_STREAM`] are in `struct weir__globals` and the registry, or of the test.
pub const CELL_NAMES: [&str; 23] = [
    "registry.owner",
    "registry.waiters",
    "timer_stream",
    "slot",
    "timer_wake",
    "timer_next",
    "accepted",
    "forking",
    "hooks_end",
    "after fork",
    "written",
    "drained",
    "limit",
    "held_limit",
    "lock.owner",
    "lock.waiters",
    "locking",
    "in_call",
    "mode",
    "armed",
    "idle_ticks",
    "refs",
    "buffer",
];
pub const REGISTRY: Lock = Lock { owner: 0, waiters: 1 };
/// The stream that the timer uses: 1 or, for none, 0.
pub const TIMER_STREAM: Cell = 2;
/// The registry's slot: 1 if it has the stream.
pub const SLOT: Cell = 3;
/// The futex word of the timer.
pub const TIMER_WAKE: Cell = 4;
/// 1: the timer has decided to sleep without a limit.
pub const TIMER_NEXT: Cell = 5;
/// Bytes that the writer's calls have accepted, for other threads of the program.
pub const ACCEPTED: Cell = 6;
/// 1: a thread is in fork(2) and holds the registry's lock.
pub const FORKING: Cell = 7;
/// 1: exit has called weir__end_fork, and before that glibc has removed the hooks.
pub const HOOKS_END: Cell = 8;
/// 1: fork(2) has returned. Not in C: the model's fork takes less than the second that weir__end_fork waits.
pub const AFTER_FORK: Cell = 9;
/// The first cell in `struct weir__state`.
pub const FIRST_OF_STREAM: Cell = 10;
pub const WRITTEN: Cell = 10;
/// The offset of the first pending byte.
pub const DRAINED: Cell = 11;
/// The inline call's limit.
pub const LIMIT: Cell = 12;
/// The limit of a call that holds the lock.
pub const HELD_LIMIT: Cell = 13;
/// Held in each call of a stream that locks.
pub const LOCK: Lock = Lock { owner: 14, waiters: 15 };
/// 1: each call takes the lock.
pub const LOCKING: Cell = 16;
/// A call runs that has not locked.
pub const IN_CALL: Cell = 17;
/// 1: `WEIR_NONE`, 0: `WEIR_FULL`.
pub const MODE: Cell = 18;
/// The timer checks the stream regularly.
pub const ARMED: Cell = 19;
/// Checks that found nothing pending.
pub const IDLE: Cell = 20;
/// References of other threads.
pub const REFS: Cell = 21;
/// The first cell of the buffer, the last array.
pub const BUFFER: Cell = 22;

pub(super) const AT: Register = 0;
pub(super) const UPTO: Register = 1;
pub(super) const TEMP: Register = 2;
/// The number of the next byte of the thread.
pub(super) const NEXT: Register = 3;
/// Bytes of the call that are not accepted yet.
pub(super) const LEFT: Register = 4;
/// Bytes that the writer had accepted when the exit or fork began.
pub const SNAPSHOT: Register = 5;
pub(super) const OK: Register = 6;

/// A waiter with a limit of time adds it to `waiters`; WEIR__URGENT in C.
const URGENT: u8 = 0x10;

/// The two words of a lock that other threads access.
#[derive(Clone, Copy, Debug)]
pub struct Lock {
    /// The number of the owning thread plus 1; 0: free.
    pub owner: Cell,
    /// The count of waiters.
    pub waiters: Cell,
}

const WAIT: &str = "syscall(SYS_membarrier, BARRIER_PRIVATE_EXPEDITED, 0, 0)";

/// weir__lock, and weir__timedlock if `urgent`. A time limit that ends, and the delays of spin and give_way, are no
/// steps: they only delay the thread.
pub fn lock(a: &mut Assembler, options: &Options, lock: Lock, me: usize, urgent: bool) {
    let me = me as u8 + 1;
    let count: i8 = if urgent { 1 + URGENT as i8 } else { 1 };
    let (done, acquired) = (a.label(), a.label());
    let acquire = |a: &mut Assembler| {
        a.c("lock.h", "weir__lock_acquire");
        let op = Op::CompareExchange {
            at: lock.owner,
            expected: 0,
            new: me,
            ok: OK,
            acquire: options.has(Rule::LockAcquire),
            release: false,
        };
        a.op(op, "atomic_compare_exchange_strong_explicit(&lock->owner, &nobody, self, memory_order_acquire");
    };
    acquire(a);
    a.branch(OK, Test::Same, Value(1), done);
    a.c("lock.c", "weir__lock_wait");
    if options.has(Rule::CountWaiter) {
        a.op(Op::FetchAdd { at: lock.waiters, delta: count }, "atomic_fetch_add(&lock->waiters, count)");
    }
    if options.has(Rule::WaiterBarrier) {
        a.op(Op::Membarrier, WAIT);
    }
    let again = a.here();
    acquire(a);
    a.branch(OK, Test::Same, Value(1), acquired);
    a.c("lock.c", "futex_wait");
    a.load(TEMP, lock.owner, "uintptr_t owner = atomic_load(&lock->owner)");
    a.branch(TEMP, Test::Same, Value(0), again);
    let wait = Op::FutexWait { at: lock.owner, expected: TEMP };
    a.op(wait, "syscall(SYS_futex, futex_of(lock), FUTEX_WAIT_PRIVATE, (uint32_t)owner, &time, NULL, 0)");
    a.jump(again);
    a.bind(acquired);
    a.c("lock.c", "weir__lock_wait");
    if options.has(Rule::CountWaiter) {
        a.op(Op::FetchAdd { at: lock.waiters, delta: -count }, "atomic_fetch_sub(&lock->waiters, count)");
    }
    let text = "atomic_store_explicit(&lock->owner, weir__this_thread(), memory_order_relaxed)";
    a.store(lock.owner, Value(me), text);
    a.bind(done);
}

/// weir__trylock of a lock that the thread does not hold; goes to `fails` if another thread has the lock.
pub fn try_lock(a: &mut Assembler, lock: Lock, me: usize, fails: Label) {
    a.c("lock.h", "weir__lock_acquire");
    let op = Op::CompareExchange {
        at: lock.owner,
        expected: 0,
        new: me as u8 + 1,
        ok: OK,
        acquire: true,
        release: false,
    };
    a.op(op, "atomic_compare_exchange_strong_explicit(&lock->owner, &nobody, self, memory_order_acquire");
    a.branch(OK, Test::Differs, Value(1), fails);
}

/// weir__unlock of a lock that is held once.
pub fn unlock(a: &mut Assembler, options: &Options, lock: Lock) {
    let done = a.label();
    a.c("lock.h", "weir__lock_release_fast");
    let release = options.has(Rule::LockRelease);
    let text = "atomic_store_explicit(&lock->owner, 0, memory_order_release)";
    a.op(Op::Store { at: Address::Fixed(lock.owner), value: Value(0), release }, text);
    a.load(TEMP, lock.waiters, "!atomic_load_explicit(&lock->waiters, memory_order_relaxed)");
    a.branch(TEMP, Test::Same, Value(0), done);
    a.c("lock.c", "weir__lock_release_slow");
    a.load(TEMP, lock.waiters, "atomic_load_explicit(&lock->waiters, memory_order_relaxed)");
    a.branch(TEMP, Test::Same, Value(0), done);
    if options.has(Rule::Wake) {
        let wake = Op::FutexWake { at: lock.owner, count: TEMP, all_from: URGENT };
        a.op(
            wake,
            "syscall(SYS_futex, futex_of(lock), FUTEX_WAKE_PRIVATE, urgent ? INT_MAX : 1, NULL, NULL, 0)",
        );
    }
    a.bind(done);
}

/// weir__enter, by the stream's own thread or, if the stream is shared, by any.
pub fn enter(a: &mut Assembler, options: &Options, me: usize) {
    let (locks, entered) = (a.label(), a.label());
    a.c("private.h", "weir__enter");
    a.load(TEMP, LOCKING, "calls || !__atomic_load_n(&state->locking, __ATOMIC_RELAXED)");
    a.branch(TEMP, Test::Same, Value(1), locks);
    a.store(
        IN_CALL,
        Value(1),
        "atomic_store_explicit(&state->in_call, (uint16_t)(calls + 1), memory_order_relaxed)",
    );
    if options.has(Rule::EnterAgain) {
        a.load(TEMP, LOCKING, "WEIR_LIKELY(calls || !__atomic_load_n(&state->locking, __ATOMIC_RELAXED))");
        a.branch(TEMP, Test::Same, Value(0), entered);
        a.store(IN_CALL, Value(0), "atomic_store_explicit(&state->in_call, 0, memory_order_release)");
    } else {
        a.jump(entered);
    }
    a.bind(locks);
    lock(a, options, LOCK, me, false);
    a.bind(entered);
}

/// weir__leave.
pub fn leave(a: &mut Assembler, options: &Options) {
    let (locked, done) = (a.label(), a.label());
    a.c("private.h", "weir__leave");
    a.load(TEMP, IN_CALL, "atomic_load_explicit(&state->in_call, memory_order_relaxed)");
    a.branch(TEMP, Test::Same, Value(0), locked);
    let release = options.has(Rule::CallRelease);
    let text = "atomic_store_explicit(&state->in_call, (uint16_t)(calls - 1), memory_order_release)";
    a.op(Op::Store { at: Address::Fixed(IN_CALL), value: Value(0), release }, text);
    a.jump(done);
    a.bind(locked);
    unlock(a, options, LOCK);
    a.bind(done);
}

/// weir__set_limits. `open`: the limits are the capacity, unless the stream is unbuffered.
pub fn set_limits(a: &mut Assembler, options: &Options, open: bool) {
    let held = if open { options.capacity } else { 0 };
    a.c("stream.c", "weir__set_limits");
    a.store(HELD_LIMIT, Value(held), "__atomic_store_n(&s->held_limit, held, __ATOMIC_RELAXED)");
    if !options.threads {
        a.store(
            LIMIT,
            Value(held),
            "__atomic_store_n(&s->limit, config->threads ? 0 : held, __ATOMIC_RELAXED)",
        );
    }
}

const SINK: &str = "write(s, vector, used)";
const GATHER: &str = "uint64_t drained = weir__drained(s)";

/// The offset up to which another thread than the stream's own writes, to UPTO.
pub(super) fn load_published(a: &mut Assembler, options: &Options) {
    let load = Op::Load { to: UPTO, at: Address::Fixed(WRITTEN), acquire: options.has(Rule::DrainAcquire) };
    a.op(load, "__atomic_load_n(&weir__head(s)->written, __ATOMIC_ACQUIRE)");
}

/// Advances `drained` after a write.
fn account(a: &mut Assembler, options: &Options, drained: Register) {
    a.c("drain.c", "account_write");
    if options.has(Rule::AccountWrite) {
        a.store(DRAINED, Of(drained), "WEIR_PUBLISH(&weir__head(s)->drained, drained + of_buffer)");
    }
}

/// weir__write_out up to the offset in UPTO. write(2) copies byte after byte; exit can end it between two of them.
pub fn write_out(a: &mut Assembler, options: &Options) {
    let done = a.label();
    let write = a.here();
    a.c("drain.c", "gather");
    a.load(AT, DRAINED, GATHER);
    let not_yet = a.label();
    a.branch(AT, Test::Less, Of(UPTO), not_yet);
    a.jump(done);
    a.bind(not_yet);
    let byte = a.here();
    a.c("drain.c", "write_loop");
    a.op(Op::WriteCell { at: Address::Indexed(BUFFER, AT), cancels: !options.has(Rule::CancelOff) }, SINK);
    a.add(AT, 1);
    let full = a.label();
    if options.short_writes {
        a.branch(AT, Test::Same, Of(UPTO), full);
        let goes_on = a.label();
        a.choose(goes_on, "written == (ssize_t)requested");
        account(a, options, AT);
        a.jump(write);
        a.bind(goes_on);
        a.jump(byte);
    }
    a.branch(AT, Test::Less, Of(UPTO), byte);
    a.bind(full);
    account(a, options, AT);
    a.bind(done);
}

/// weir__reset.
pub fn reset(a: &mut Assembler) {
    a.c("drain.c", "weir__reset");
    a.store(WRITTEN, Value(0), "WEIR_PUBLISH(&head->written, head->base)");
    a.store(DRAINED, Value(0), "WEIR_PUBLISH(&head->drained, 0)");
}

/// weir__drain.
pub fn drain(a: &mut Assembler, options: &Options) {
    a.c("drain.c", "weir__drain");
    a.load(UPTO, WRITTEN, "weir__written(s)");
    write_out(a, options);
    let done = a.label();
    a.c("drain.c", "weir__drain_to");
    a.load(UPTO, WRITTEN, "weir__pending(s) == 0");
    a.load(AT, DRAINED, "weir__pending(s) == 0");
    a.branch(AT, Test::Differs, Of(UPTO), done);
    a.branch(UPTO, Test::Same, Value(0), done);
    reset(a);
    a.bind(done);
}

/// Stores the next byte at AT, and what follows it.
pub fn store_byte(a: &mut Assembler, me: usize, text: &'static str) {
    a.set(TEMP, Of(NEXT));
    a.add(TEMP, first_byte(me));
    a.op(Op::Store { at: Address::Indexed(BUFFER, AT), value: Of(TEMP), release: false }, text);
    a.add(AT, 1);
    a.add(NEXT, 1);
    a.add(LEFT, 0xff);
}

/// write_bypass of LEFT bytes: pending bytes and the caller's in one write(2).
pub fn write_bypass(a: &mut Assembler, options: &Options, me: usize) {
    let (write, pending, own, full) = (a.label(), a.label(), a.label(), a.label());
    let cancels = !options.has(Rule::CancelOff);
    a.c("write.c", "write_bypass");
    a.load(UPTO, WRITTEN, "weir__written(s)");
    a.bind(write);
    a.c("drain.c", "gather");
    a.load(AT, DRAINED, GATHER);
    a.bind(pending);
    a.c("drain.c", "write_loop");
    a.branch(AT, Test::Same, Of(UPTO), own);
    a.op(Op::WriteCell { at: Address::Indexed(BUFFER, AT), cancels }, SINK);
    a.add(AT, 1);
    a.jump(pending);
    a.bind(own);
    a.op(Op::WriteValue { base: first_byte(me), number: NEXT, cancels }, SINK);
    a.add(NEXT, 1);
    a.add(LEFT, 0xff);
    a.branch(LEFT, Test::Same, Value(0), full);
    if options.short_writes {
        let goes_on = a.label();
        a.choose(goes_on, "written == (ssize_t)requested");
        account(a, options, AT);
        a.jump(write);
        a.bind(goes_on);
    }
    a.jump(own);
    a.bind(full);
    account(a, options, AT);
    let done = a.label();
    a.c("write.c", "write_bypass");
    a.branch(UPTO, Test::Same, Value(0), done);
    reset(a);
    a.bind(done);
}
