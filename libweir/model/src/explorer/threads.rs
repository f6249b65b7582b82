//! The threads of the models that write: writers and the timer.

use super::machine::{Address, Op, Operand, Test};
use super::program::{Assembler, Program};
use super::rules::{Options, Rule};
use super::steps::*;
use Operand::{Of, Value};

/// weir__start_writing of a stream with a delay: arms the timer.
fn start_writing(a: &mut Assembler, options: &Options) {
    if !options.delay {
        return;
    }
    let (armed, unbuffered, done) = (a.label(), a.label(), a.label());
    a.c("write.c", "weir__start_writing");
    a.load(TEMP, ARMED, "config->stale_ms && !state->armed");
    a.branch(TEMP, Test::Same, Value(1), armed);
    a.c("stale.c", "weir__stale_arm");
    a.store(ARMED, Value(1), "state->armed = true");
    a.store(IDLE, Value(0), "state->idle_ticks = 0");
    a.c("stream.c", "allows_append");
    a.load(TEMP, MODE, "config->can_write");
    a.branch(TEMP, Test::Same, Value(1), unbuffered);
    set_limits(a, options, true);
    a.bind(unbuffered);
    a.c("stale.c", "weir__stale_arm");
    if options.has(Rule::ChangeTimerWord) {
        a.op(Op::FetchAdd { at: TIMER_WAKE, delta: 1 }, "atomic_fetch_add(&weir__globals->timer_wake, 1)");
    }
    a.load(TEMP, TIMER_NEXT, "state->deadline < atomic_load(&weir__globals->timer_next)");
    a.branch(TEMP, Test::Same, Value(0), done);
    if options.has(Rule::WakeTimer) {
        let wake = Op::FutexWake { at: TIMER_WAKE, count: TEMP, all_from: 1 };
        a.op(wake, "syscall(SYS_futex, &weir__globals->timer_wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0)");
    }
    a.bind(done);
    a.bind(armed);
}

/// Work of a writer of lines.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    /// The number of lines.
    pub lines: u8,
    /// Bytes of a line.
    pub bytes: u8,
    /// It tells other threads what was accepted.
    pub tells: bool,
    /// Another thread may cancel it: it has a cancellation point after each line.
    pub cancelled: bool,
    /// It closes the stream at the end.
    pub closes: bool,
}

/// A thread that writes lines to a shared stream by weir_write.
pub fn line_writer(name: &'static str, me: usize, options: &Options, work: Lines) -> Program {
    let mut assembler = Assembler::new(name);
    let a = &mut assembler;
    a.set(NEXT, Value(0));
    let call = a.here();
    a.set(LEFT, Value(work.bytes));
    enter(a, options, me);
    start_writing(a, options);
    write_line(a, options, me);
    leave(a, options);
    a.c("write.c", "weir_write_slow");
    a.op(Op::Accept { bytes: NEXT }, "return result");
    if work.tells {
        a.store(ACCEPTED, Of(NEXT), "return result");
    }
    if work.cancelled {
        a.op(Op::TestCancel, "");
    }
    a.branch(NEXT, Test::Less, Value(work.lines * work.bytes), call);
    if work.closes {
        super::endings::close(a, me, options);
    }
    assembler.finish()
}

/// weir__write_held in the modes WEIR_FULL and WEIR_NONE.
fn write_line(a: &mut Assembler, options: &Options, me: usize) {
    let (buffered, done) = (a.label(), a.label());
    a.c("write.c", "weir__write_held");
    a.load(TEMP, MODE, "config->mode == WEIR_NONE");
    a.branch(TEMP, Test::Same, Value(0), buffered);
    write_bypass(a, options, me);
    a.jump(done);
    a.bind(buffered);
    let fill = a.here();
    a.c("write.c", "write_full");
    a.load(AT, WRITTEN, "size_t room = weir__room(s)");
    let (copy, copied) = (a.label(), a.label());
    a.branch(AT, Test::Same, Value(options.capacity), copied);
    a.bind(copy);
    a.c("write.c", "copy_in");
    store_byte(a, me, "memcpy(weir__config(s)->buffer + weir__written(s), from, bytes)");
    a.branch(LEFT, Test::Same, Value(0), copied);
    a.branch(AT, Test::Less, Value(options.capacity), copy);
    a.bind(copied);
    a.c("private.h", "weir__publish");
    let text = "WEIR_PUBLISH(&weir__head(s)->written, WEIR_LOAD(&weir__head(s)->written) + bytes)";
    a.store(WRITTEN, Of(AT), text);
    a.branch(LEFT, Test::Same, Value(0), done);
    drain(a, options);
    a.jump(fill);
    a.bind(done);
}

/// The stream's own thread: weir_putc of each byte.
pub fn own_writer(me: usize, options: &Options, bytes: u8) -> Program {
    let mut assembler = Assembler::new("owner");
    let a = &mut assembler;
    a.set(NEXT, Value(0));
    let call = a.here();
    let (slow, accepted) = (a.label(), a.label());
    a.set(LEFT, Value(1));
    a.c("weir.h", "weir_putc");
    a.load(AT, WRITTEN, "uint64_t at = WEIR_LOAD(&s->head.written)");
    a.load(TEMP, LIMIT, "at < WEIR_LOAD(&s->limit)");
    let inline = a.label();
    a.branch(AT, Test::Less, Of(TEMP), inline);
    a.jump(slow);
    a.bind(inline);
    append_inline(
        a,
        options,
        me,
        "*(char *)(uintptr_t)at = (char)c",
        "WEIR_PUBLISH(&s->head.written, at + 1)",
    );
    a.jump(accepted);
    a.bind(slow);
    putc_slow(a, options, me);
    a.bind(accepted);
    a.c("weir.h", "weir_putc");
    a.op(Op::Accept { bytes: NEXT }, "return weir_putc_slow(s, c)");
    a.store(ACCEPTED, Of(NEXT), "return weir_putc_slow(s, c)");
    a.branch(NEXT, Test::Less, Value(bytes), call);
    assembler.finish()
}

fn append_inline(a: &mut Assembler, options: &Options, me: usize, byte: &'static str, publish: &'static str) {
    if !options.has(Rule::PublishLast) {
        a.set(UPTO, Of(AT));
        a.add(UPTO, 1);
        a.store(WRITTEN, Of(UPTO), publish);
    }
    store_byte(a, me, byte);
    if options.has(Rule::PublishLast) {
        let release = options.has(Rule::PublishRelease);
        a.op(Op::Store { at: Address::Fixed(WRITTEN), value: Of(AT), release }, publish);
    }
}

/// weir_putc_slow of the stream's own thread, in a process with several threads.
fn putc_slow(a: &mut Assembler, options: &Options, me: usize) {
    let (by_enter, held, done) = (a.label(), a.label(), a.label());
    a.c("write.c", "putc_locked");
    a.load(TEMP, LOCKING, "!__atomic_load_n(&weir__state(s)->locking, __ATOMIC_ACQUIRE)");
    a.branch(TEMP, Test::Same, Value(0), by_enter);
    try_lock(a, LOCK, me, by_enter);
    a.c("write.c", "putc_locked");
    a.load(AT, WRITTEN, "uint64_t at = WEIR_LOAD(&s->head.written)");
    a.load(TEMP, HELD_LIMIT, "at < s->held_limit");
    let fits = a.label();
    a.branch(AT, Test::Less, Of(TEMP), fits);
    a.jump(held);
    a.bind(fits);
    a.c("write.c", "store_byte");
    append_inline(
        a,
        options,
        me,
        "*(char *)(uintptr_t)at = (char)c",
        "WEIR_PUBLISH(&s->head.written, at + 1)",
    );
    unlock(a, options, LOCK);
    a.jump(done);
    a.bind(by_enter);
    a.c("write.c", "putc_enter");
    enter(a, options, me);
    a.bind(held);
    putc_slow_held(a, options, me);
    leave(a, options);
    a.bind(done);
}

fn putc_slow_held(a: &mut Assembler, options: &Options, me: usize) {
    let (buffered, room, done) = (a.label(), a.label(), a.label());
    start_writing(a, options);
    a.c("write.c", "putc_slow_held");
    a.load(TEMP, MODE, "config->mode != WEIR_LINE && config->mode != WEIR_FULL");
    a.branch(TEMP, Test::Same, Value(0), buffered);
    write_bypass(a, options, me);
    a.jump(done);
    a.bind(buffered);
    a.c("write.c", "putc_slow_held");
    a.load(AT, WRITTEN, "weir__room(s) == 0");
    a.branch(AT, Test::Less, Value(options.capacity), room);
    drain(a, options);
    a.c("write.c", "copy_in");
    a.load(AT, WRITTEN, "weir__written(s)");
    a.bind(room);
    a.c("write.c", "copy_in");
    let text = "memcpy(weir__config(s)->buffer + weir__written(s), from, bytes)";
    append_inline(a, options, me, text, "weir__publish(s, bytes)");
    a.bind(done);
}

/// next_for_timer: `stream` is the stream, or else the timer goes to the end of its check.
fn next_for_timer(a: &mut Assembler, options: &Options, me: usize, without: super::program::Label) {
    lock(a, options, REGISTRY, me, false);
    let (none, done) = (a.label(), a.label());
    let text = "atomic_store(&weir__globals->timer_stream, s)";
    a.c("stale.c", "next_for_timer");
    a.load(AT, SLOT, "weir_stream *s = weir__next_stream(slot)");
    a.branch(AT, Test::Same, Value(0), none);
    exchange(a, TIMER_STREAM, 1, text);
    unlock(a, options, REGISTRY);
    a.jump(done);
    a.bind(none);
    a.c("stale.c", "next_for_timer");
    exchange(a, TIMER_STREAM, 0, text);
    unlock(a, options, REGISTRY);
    a.jump(without);
    a.bind(done);
}

/// The timer: checks the stream again and again. `registry`: takes it from the registry each time. `sleeps`: sleeps
/// without a limit if the stream is not armed; the C code sleeps for a second at most.
pub fn timer(me: usize, options: &Options, registry: bool, sleeps: bool) -> Program {
    let mut assembler = Assembler::new("timer");
    let a = &mut assembler;
    let check = a.here();
    let (checked, unlocks) = (a.label(), a.label());
    if sleeps {
        a.c("stale.c", "timer");
        a.load(UPTO, TIMER_WAKE, "uint32_t wake_value = atomic_load(&weir__globals->timer_wake)");
        a.set(LEFT, Of(UPTO));
        exchange(a, TIMER_NEXT, 0, "atomic_store(&weir__globals->timer_next, 0)");
    }
    if registry {
        next_for_timer(a, options, me, checked);
    }
    if options.has(Rule::TimerLock) {
        try_lock(a, LOCK, me, if registry { checked } else { check });
    }
    check_stream(a, options, unlocks);
    a.bind(unlocks);
    if sleeps {
        a.load(NEXT, ARMED, "");
    }
    if options.has(Rule::TimerLock) {
        unlock(a, options, LOCK);
    }
    a.bind(checked);
    if registry {
        a.c("stale.c", "check_all");
        exchange(a, TIMER_STREAM, 0, "atomic_store(&weir__globals->timer_stream, NULL)");
    }
    if sleeps {
        a.branch(NEXT, Test::Same, Value(1), check);
        a.c("stale.c", "timer");
        exchange(a, TIMER_NEXT, 1, "atomic_store(&weir__globals->timer_next, next)");
        a.c("stale.c", "sleep_until");
        let text = "syscall(SYS_futex, &weir__globals->timer_wake, FUTEX_WAIT_PRIVATE, wake_value,";
        a.op(Op::FutexWait { at: TIMER_WAKE, expected: LEFT }, text);
    }
    a.jump(check);
    assembler.finish()
}

/// A sequentially consistent store of 0 or 1: on x86-64 a locked exchange.
pub(super) fn exchange(a: &mut Assembler, at: super::machine::Cell, value: u8, text: &'static str) {
    a.op(
        Op::CompareExchange { at, expected: 1 - value, new: value, ok: OK, acquire: true, release: true },
        text,
    );
}

/// check_stream.
fn check_stream(a: &mut Assembler, options: &Options, done: super::program::Label) {
    let (pending, nothing, disarms) = (a.label(), a.label(), a.label());
    a.c("stale.c", "check_stream");
    a.load(UPTO, WRITTEN, "weir__drained(s) < weir__written(s)");
    a.load(AT, DRAINED, "weir__drained(s) < weir__written(s)");
    a.branch(AT, Test::Less, Of(UPTO), pending);
    a.bind(nothing);
    a.load(TEMP, ARMED, "if (!state->armed)");
    a.branch(TEMP, Test::Same, Value(0), done);
    a.load(TEMP, IDLE, "++state->idle_ticks < 2");
    a.branch(TEMP, Test::Same, Value(1), disarms);
    a.store(IDLE, Value(1), "++state->idle_ticks < 2");
    a.jump(done);
    a.bind(disarms);
    a.store(ARMED, Value(0), "state->armed = false");
    set_limits(a, options, false);
    a.jump(done);
    a.bind(pending);
    if !options.has(Rule::LateCheck) {
        a.load(TEMP, ARMED, "if (!state->armed)");
        a.branch(TEMP, Test::Same, Value(0), done);
    }
    a.c("stale.c", "drain_stale");
    load_published(a, options);
    write_out(a, options);
    a.c("stale.c", "drain_stale");
    a.store(IDLE, Value(0), "state->idle_ticks = 0");
}
