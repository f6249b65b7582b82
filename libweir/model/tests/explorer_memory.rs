//! The memory models of the search: small programs whose results each model has or does not have.

use weir_libweir_model::explorer::history::ORDERED;
use weir_libweir_model::explorer::machine::{Address, CELLS, Cell, Op, Operand::Value, THREADS, Test};
use weir_libweir_model::explorer::program::{Assembler, Program};
use weir_libweir_model::explorer::promises::{Child, Promises};
use weir_libweir_model::explorer::run::{Machine, Memory};
use weir_libweir_model::explorer::search::explore;
use weir_libweir_model::explorer::steps::{CELL_NAMES, FIRST_OF_STREAM, LOCK};

const X: Cell = 0;
const Y: Cell = 1;

fn store(a: &mut Assembler, at: Cell, value: u8, release: bool) {
    a.op(Op::Store { at: Address::Fixed(at), value: Value(value), release }, "");
}

fn program(name: &'static str, steps: impl FnOnce(&mut Assembler)) -> Program {
    let mut assembler = Assembler::new(name);
    steps(&mut assembler);
    assembler.finish()
}

/// A thread that loads the cells one after another, with acquire order if so marked, and writes a byte that nobody stored if
/// the values are these.
fn finds(a: &mut Assembler, loads: &[(Cell, u8, bool)]) {
    let other = a.label();
    for (register, (at, _, acquire)) in loads.iter().enumerate() {
        a.op(Op::Load { to: register as u8, at: Address::Fixed(*at), acquire: *acquire }, "");
    }
    for (register, (_, value, _)) in loads.iter().enumerate() {
        a.branch(register as u8, Test::Differs, Value(*value), other);
    }
    a.op(Op::WriteValue { base: 0, number: 6, cancels: false }, "");
    a.bind(other);
}

/// Returns whether a thread finds the values that it looks for.
fn is_possible(memory: Memory, programs: &[Program]) -> bool {
    let promises = Promises {
        line: 1,
        missing: 0,
        writer: 0,
        all: [0; THREADS],
        exits: false,
        child: Child::Flushed,
        names: &CELL_NAMES,
        first_cell_of_stream: FIRST_OF_STREAM,
    };
    let last = program("idle", |_| {}); // a model that does not exit ends without its last thread
    let programs = [programs, &[last]].concat();
    let report = explore(&Machine::new(programs, vec![], memory, promises, LOCK.owner, [false; CELLS]));
    let reason = report.violation.map(|violation| violation.reason);
    assert!(reason.iter().all(|reason| reason.contains("nobody stored")), "{reason:?}");
    reason.is_some()
}

/// One thread stores a value and then a flag; another finds the flag and not the value.
fn message(release: bool, acquire: bool) -> [Program; 2] {
    [
        program("sender", |a| {
            store(a, X, 1, false);
            store(a, Y, 1, release);
        }),
        program("receiver", |a| finds(a, &[(Y, 1, acquire), (X, 0, false)])),
    ]
}

#[test]
fn a_message_needs_release_order_where_stores_overtake() {
    for (memory, possible) in
        [(Memory::Sc, false), (Memory::Tso, false), (Memory::Relaxed, true), (Memory::Unordered, true)]
    {
        assert_eq!(is_possible(memory, &message(false, true)), possible, "{memory:?}");
    }
}

#[test]
fn a_message_needs_acquire_order_where_loads_return_old_values() {
    for (memory, possible) in [(Memory::Tso, false), (Memory::Relaxed, false), (Memory::Unordered, true)] {
        assert_eq!(is_possible(memory, &message(true, false)), possible, "{memory:?}");
        assert!(!is_possible(memory, &message(true, true)), "{memory:?}");
    }
}

/// Each thread stores into its cell and loads the other's.
fn store_buffers(barrier: [Option<Op>; 2]) -> [Program; 2] {
    let one = |name: &'static str, own: Cell, other: Cell, seen: Cell, theirs: Cell, op: Option<Op>| {
        program(name, move |a| {
            store(a, own, 1, false);
            if let Some(op) = op {
                a.op(op, "");
            }
            // says what it has loaded, so that one thread can look for the result of both
            let not_zero = a.label();
            a.op(Op::Load { to: 0, at: Address::Fixed(other), acquire: false }, "");
            a.branch(0, Test::Differs, Value(0), not_zero);
            a.op(Op::FetchAdd { at: seen, delta: 1 }, "");
            finds(a, &[(theirs, 1, true)]);
            a.bind(not_zero);
        })
    };
    [one("first", X, Y, 2, 3, barrier[0]), one("second", Y, X, 3, 2, barrier[1])]
}

#[test]
fn two_stores_need_a_barrier_that_reaches_both_threads() {
    let full = Some(Op::FetchAdd { at: 4, delta: 1 });
    for memory in [Memory::Tso, Memory::Relaxed, Memory::Unordered] {
        assert!(is_possible(memory, &store_buffers([None, None])), "{memory:?}");
        assert!(is_possible(memory, &store_buffers([full, None])), "{memory:?}");
        assert!(!is_possible(memory, &store_buffers([full, full])), "{memory:?}");
        assert!(!is_possible(memory, &store_buffers([Some(Op::Membarrier), None])), "{memory:?}");
    }
    assert!(!is_possible(Memory::Sc, &store_buffers([None, None])));
}

/// Stores `count` values, each greater by 1.
fn counter(count: u8) -> Program {
    program("counter", |a| (1..=count).for_each(|value| store(a, X, value, false)))
}

#[test]
fn loads_of_one_cell_never_go_back() {
    let back = |loads: &[(Cell, u8, bool)]| {
        is_possible(Memory::Unordered, &[counter(3), program("reader", |a| finds(a, loads))])
    };
    assert!(!back(&[(X, 2, false), (X, 1, false)]));
    assert!(!back(&[(X, 3, true), (X, 0, false)]));
    assert!(back(&[(X, 0, false), (X, 1, false), (X, 2, false), (X, 3, false)]));
}

/// A thread may be late by any number of stores. Their order is known of the newest only: more is possible then, not less.
#[test]
fn no_old_value_is_forgotten() {
    let count = ORDERED as u8 + 3;
    let late = |loads: &[(Cell, u8, bool)]| {
        let sender = program("sender", |a| {
            (1..=count).for_each(|value| store(a, X, value, false));
            store(a, Y, 1, true);
        });
        is_possible(Memory::Unordered, &[sender, program("reader", |a| finds(a, loads))])
    };
    for value in 0..=count {
        assert!(late(&[(Y, 1, false), (X, value, false)]), "{value}");
        assert_eq!(late(&[(Y, 1, true), (X, value, false)]), value == count, "{value}");
    }
    assert!(late(&[(Y, 1, false), (X, 0, false), (X, 1, false), (X, count, false)]));
    assert!(!late(&[(X, count, false), (X, 0, false)]));
}
