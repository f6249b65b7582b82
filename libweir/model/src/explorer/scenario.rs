//! The scenarios of the search.

use super::endings::{Besides, canceller, exit, flush_all, fork, open_with_lock};
use super::machine::{CELLS, Cell, THREADS};
use super::program::Program;
use super::promises::{Child, Promises};
use super::rules::{Options, Rule};
use super::run::{Machine, Memory};
use super::steps;
use super::threads::{Lines, line_writer, own_writer, timer};

/// How large a scenario is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// For each change of the code.
    Quick,
    Full,
}

/// Threads that use one stream.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub name: &'static str,
    /// The rules whose breach it finds.
    pub rules: &'static [Rule],
    make: fn(Options, Extent) -> (Options, Vec<Program>, Ending),
}

/// Differences between the promises of the scenarios.
struct Ending {
    line: u8,
    all: [u8; THREADS],
    missing: u8,
    exits: bool,
    child: Child,
}

const EXITS: Ending = Ending { line: 2, all: [0; THREADS], missing: 0, exits: true, child: Child::Flushed };

pub const SCENARIOS: [Scenario; 11] = [
    Scenario {
        name: "two writers of lines, the timer and exit",
        rules: &[Rule::AccountWrite, Rule::TimerLock, Rule::WaitDespiteIdle, Rule::HoldAtEnd],
        make: shared,
    },
    Scenario {
        name: "two writers of lines and exit",
        rules: &[Rule::LockRelease, Rule::LockAcquire, Rule::CountWaiter, Rule::WaiterBarrier, Rule::Wake], // the timer's releases would wake a waiter
        make: without_timer,
    },
    Scenario {
        name: "a stream's own thread with a delay, the timer, exit and, in full, weir_flush_all",
        rules: &[Rule::PublishLast, Rule::NoForeignReset],
        make: own_with_delay,
    },
    Scenario {
        name: "a stream's own thread, weir_flush_all and exit",
        rules: &[
            Rule::SetLocking,
            Rule::WaitForCall,
            Rule::ExitBarrier,
            Rule::EnterAgain,
            Rule::CallRelease,
            Rule::CallAcquire,
        ],
        make: own,
    },
    Scenario {
        name: "a stream's own thread and the timer",
        rules: &[Rule::LateCheck, Rule::PublishRelease, Rule::DrainAcquire],
        make: own_and_timer,
    },
    Scenario {
        name: "a writer and the timer that sleeps",
        rules: &[Rule::ChangeTimerWord, Rule::WakeTimer],
        make: timer_sleeps,
    },
    Scenario {
        name: "a writer, fork with WEIR_FORK_FLUSH, exit and, in full, the timer",
        rules: &[Rule::ForkFlush, Rule::ForkWipe],
        make: fork_flush,
    },
    Scenario {
        name: "a writer, fork with WEIR_FORK_KEEP, exit and, in full, the timer",
        rules: &[Rule::ForkLock, Rule::StreamBeforeRegistry, Rule::EndFork, Rule::LookForEnd],
        make: fork_keep,
    },
    Scenario {
        name: "weir_open between weir_lock and weir_unlock, fork with WEIR_FORK_KEEP and exit",
        rules: &[Rule::StreamBeforeRegistry],
        make: fork_keep_open,
    },
    Scenario { name: "two writers, a cancellation and exit", rules: &[Rule::CancelOff], make: cancel },
    Scenario {
        name: "a close, the timer, exit and, in full, weir_flush_all",
        rules: &[Rule::CloseWaitsForTimer, Rule::CloseWaitsForReferences, Rule::ReferenceLocked],
        make: close,
    },
];

impl Scenario {
    pub fn machine(&self, without: Option<Rule>, memory: Memory, extent: Extent) -> Machine {
        let options = Options { without, threads: true, delay: true, capacity: 3, short_writes: false };
        let (options, programs, ending) = (self.make)(options, extent);
        let held = if options.delay { 0 } else { options.capacity };
        let inline = if options.threads { 0 } else { held };
        let cells: Vec<(Cell, u8)> = vec![
            (steps::SLOT, 1),
            (steps::LIMIT, inline),
            (steps::HELD_LIMIT, held),
            (steps::LOCKING, u8::from(options.threads || options.delay)),
        ];
        let promises = Promises {
            line: ending.line,
            missing: ending.missing,
            writer: 0,
            all: ending.all,
            exits: ending.exits,
            child: ending.child,
            names: &steps::CELL_NAMES,
            first_cell_of_stream: steps::FIRST_OF_STREAM,
        };
        let locked = locked_cells(&options);
        Machine::new(programs, cells, memory, promises, steps::LOCK.owner, locked)
    }
}

/// Returns the cells that the threads use only with the stream's lock. Without a rule that may not be so.
fn locked_cells(options: &Options) -> [bool; CELLS] {
    let mut locked = [false; CELLS];
    let of_calls = [steps::DRAINED, steps::HELD_LIMIT, steps::MODE, steps::ARMED, steps::IDLE];
    let always_locks = options.threads || options.delay;
    if always_locks && options.without.is_none() {
        of_calls.iter().for_each(|cell| locked[usize::from(*cell)] = true);
    }
    if options.threads && options.without.is_none() {
        [steps::WRITTEN, steps::LIMIT].iter().for_each(|cell| locked[usize::from(*cell)] = true);
        locked[usize::from(steps::BUFFER)..].fill(true);
    }
    locked
}

fn lines(lines: u8) -> Lines {
    Lines { lines, bytes: 2, tells: false, cancelled: false, closes: false }
}

fn shared(options: Options, extent: Extent) -> (Options, Vec<Program>, Ending) {
    let full = extent == Extent::Full;
    let options = Options { short_writes: full, ..options };
    let programs = vec![
        line_writer("writer A", 0, &options, lines(if full { 2 } else { 1 })),
        line_writer("writer B", 1, &options, lines(if full { 2 } else { 1 })),
        timer(2, &options, false, false),
        exit(3, &options, Besides::Nothing),
    ];
    (options, programs, EXITS)
}

fn without_timer(options: Options, extent: Extent) -> (Options, Vec<Program>, Ending) {
    let full = extent == Extent::Full;
    let options = Options { delay: false, short_writes: full, ..options };
    let programs = vec![
        line_writer("writer A", 0, &options, lines(2)),
        line_writer("writer B", 1, &options, lines(if full { 3 } else { 1 })),
        exit(2, &options, Besides::Nothing),
    ];
    (options, programs, EXITS)
}

/// One accepted byte may be missing: that of an inline call which loaded the limit before the exit changed it.
const OWN: Ending = Ending { line: 1, missing: 1, ..EXITS };

fn own_with_delay(options: Options, extent: Extent) -> (Options, Vec<Program>, Ending) {
    let full = extent == Extent::Full;
    let options = Options { threads: false, capacity: 2, ..options };
    let mut programs = vec![
        own_writer(0, &options, 3),
        timer(1, &options, false, false),
        exit(2, &options, Besides::Nothing),
    ];
    if full {
        programs.push(flush_all(3, &options, false));
    }
    (options, programs, OWN)
}

fn own(options: Options, extent: Extent) -> (Options, Vec<Program>, Ending) {
    let full = extent == Extent::Full;
    let options = Options { threads: false, delay: false, capacity: 2, short_writes: full, ..options };
    let programs = vec![
        own_writer(0, &options, if full { 6 } else { 4 }),
        flush_all(1, &options, false),
        exit(2, &options, Besides::Nothing),
    ];
    (options, programs, OWN)
}

fn own_and_timer(options: Options, extent: Extent) -> (Options, Vec<Program>, Ending) {
    let bytes = if extent == Extent::Full { 8 } else { 4 }; // the last is an inline call
    let options = Options { threads: false, capacity: 2, short_writes: true, ..options };
    let programs = vec![own_writer(0, &options, bytes), timer(1, &options, false, false)];
    (options, programs, Ending { all: [bytes, 0, 0, 0, 0], exits: false, ..OWN })
}

fn timer_sleeps(options: Options, extent: Extent) -> (Options, Vec<Program>, Ending) {
    let all = if extent == Extent::Full { 6 } else { 4 };
    let programs =
        vec![line_writer("writer A", 0, &options, lines(all / 2)), timer(1, &options, false, true)];
    (options, programs, Ending { all: [all, 0, 0, 0, 0], exits: false, ..EXITS })
}

fn fork_flush(options: Options, extent: Extent) -> (Options, Vec<Program>, Ending) {
    let child = if options.has(Rule::ForkWipe) { Child::Flushed } else { Child::NotWiped };
    forking(options, extent, child)
}

fn fork_keep(options: Options, extent: Extent) -> (Options, Vec<Program>, Ending) {
    forking(options, extent, Child::Kept)
}

fn forking(options: Options, extent: Extent, child: Child) -> (Options, Vec<Program>, Ending) {
    let work = Lines { tells: true, ..lines(2) };
    let kept = child == Child::Kept;
    let mut programs = vec![
        line_writer("writer A", 0, &options, work),
        fork(1, &options, kept),
        exit(2, &options, Besides::Fork { thread: 1, kept }),
    ];
    if extent == Extent::Full {
        programs.push(timer(3, &options, false, false));
    }
    (options, programs, Ending { child, ..EXITS })
}

fn fork_keep_open(options: Options, _: Extent) -> (Options, Vec<Program>, Ending) {
    let kept = true;
    let programs = vec![
        open_with_lock(0, &options),
        fork(1, &options, true),
        exit(2, &options, Besides::Fork { thread: 1, kept }),
    ];
    (options, programs, Ending { child: Child::Kept, ..EXITS })
}

fn cancel(options: Options, extent: Extent) -> (Options, Vec<Program>, Ending) {
    let full = extent == Extent::Full;
    let options = Options { delay: false, ..options };
    let programs = vec![
        line_writer("writer A", 0, &options, Lines { cancelled: true, ..lines(2) }),
        line_writer("writer B", 1, &options, lines(if full { 2 } else { 1 })),
        canceller(0),
        exit(3, &options, Besides::Nothing),
    ];
    (options, programs, EXITS)
}

fn close(options: Options, extent: Extent) -> (Options, Vec<Program>, Ending) {
    let work = Lines { closes: true, ..lines(1) };
    let mut programs = vec![
        line_writer("writer A", 0, &options, work),
        timer(1, &options, true, false),
        exit(2, &options, Besides::Registry),
    ];
    if extent == Extent::Full {
        programs.push(flush_all(3, &options, true));
    }
    (options, programs, EXITS)
}
