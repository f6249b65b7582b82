//! Checks the protocol in every order of its steps, and that the check fails without each of its protective steps.

use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use std::io::Write;
use weir_libweir_model::{Protocol, Step, Stream};

/// `make test` bounds the number of forced switches between threads; `make test-all` has larger bounds, or none.
fn is_full() -> bool {
    std::env::var("WEIR_CAMPAIGN").is_ok_and(|campaign| campaign == "full")
}

/// println! is captured by the test harness, and shown for failed tests only.
fn say(line: &str) {
    std::io::stdout().write_all(line.as_bytes()).expect("standard output");
}

#[derive(Clone, Copy)]
struct Scenario {
    name: &'static str,
    run: fn(Protocol),
    quick_bound: Option<usize>,
    full_bound: Option<usize>,
    /// The steps that it checks.
    steps: &'static [Step],
}

const SCENARIOS: [Scenario; 7] = [
    Scenario {
        name: "a thread and the timer",
        run: timer,
        quick_bound: Some(3),
        full_bound: Some(5),
        steps: &[Step::PublishRelease, Step::DrainAcquire, Step::TimerLock, Step::LateCheck],
    },
    Scenario {
        name: "two threads share a stream",
        run: shared,
        quick_bound: Some(3),
        full_bound: None,
        steps: &[
            Step::LockAcquire,
            Step::LockRelease,
            Step::CountWaiter,
            Step::WaiterBarrier,
            Step::OwnerBarrier,
        ],
    },
    Scenario {
        name: "exit and a thread with its own stream",
        run: exit_unshared,
        quick_bound: Some(3),
        full_bound: Some(4),
        steps: &[
            Step::NoForeignReset,
            Step::SetLocking,
            Step::WaitForCall,
            Step::ExitBarrier,
            Step::EnterAgain,
            Step::EnterBarrier,
        ],
    },
    Scenario {
        name: "exit and a thread that returns from a read",
        run: exit_read,
        quick_bound: Some(3),
        full_bound: None,
        steps: &[Step::ReadWaits],
    },
    Scenario {
        name: "the end of the process",
        run: hold,
        quick_bound: Some(3),
        full_bound: Some(5),
        steps: &[Step::HoldAtEnd],
    },
    Scenario {
        name: "inspection from outside",
        run: inspection,
        quick_bound: Some(3),
        full_bound: Some(4),
        steps: &[Step::ResetOrder, Step::ResetFence, Step::InspectAgain],
    },
    Scenario {
        name: "two threads, the timer and exit",
        run: all,
        quick_bound: Some(2),
        full_bound: Some(3),
        steps: &[],
    },
];

const MAIN: usize = 1;
const TIMER: usize = 2;
const WORKER: usize = 3;
const SECOND: usize = 4;

/// The owner fills the buffer twice by the inline call while the timer checks.
fn timer(protocol: Protocol) {
    let stream = Arc::new(Stream::new(protocol, true, true));
    let timer = {
        let stream = stream.clone();
        thread::spawn(move || {
            stream.timer_check(TIMER);
            stream.timer_check(TIMER);
        })
    };
    for byte in *b"abcd" {
        stream.putc(MAIN, byte, true);
    }
    timer.join().unwrap();
    stream.timer_check(TIMER); // a later check, also of a stream that is no longer armed
    assert_eq!(stream.file(), b"abcd");
}

fn shared(protocol: Protocol) {
    let stream = Arc::new(Stream::new(protocol, true, false));
    let worker = {
        let stream = stream.clone();
        thread::spawn(move || stream.put_line(WORKER, b'w'))
    };
    stream.put_line(MAIN, b'm');
    worker.join().unwrap();
    stream.flush(MAIN);
    let file = stream.file();
    assert!(file == b"mmww" || file == b"wwmm", "{file:?} of the file");
}

/// The bytes are a beginning of "abc", and contain what the worker had accepted when the flush began.
fn exit_unshared(protocol: Protocol) {
    let stream = Arc::new(Stream::new(protocol, false, true));
    let accepted = Arc::new(AtomicUsize::new(0));
    let worker = {
        let (stream, accepted) = (stream.clone(), accepted.clone());
        thread::spawn(move || {
            for (i, byte) in b"abc".iter().enumerate() {
                stream.putc(WORKER, *byte, false);
                accepted.store(i + 1, Ordering::Release);
            }
        })
    };
    let before = accepted.load(Ordering::Acquire);
    stream.flush_at_exit(MAIN);
    let file = stream.hold(MAIN);
    assert!(b"abc".starts_with(&file) && file.len() >= before, "{file:?} of the file, {before} accepted");
    worker.join().unwrap();
    stream.flush(WORKER);
    assert_eq!(stream.file(), b"abc");
}

fn exit_read(protocol: Protocol) {
    let stream = Arc::new(Stream::new(protocol, false, true));
    let worker = {
        let stream = stream.clone();
        thread::spawn(move || {
            stream.putc(WORKER, b'a', false);
            stream.read_and_putc(WORKER, b'b');
        })
    };
    stream.flush_at_exit(MAIN);
    worker.join().unwrap();
    stream.flush(WORKER);
    assert_eq!(stream.file(), b"ab");
}

/// At the end the file has whole lines only.
fn hold(protocol: Protocol) {
    let stream = Arc::new(Stream::new(protocol, true, false));
    let worker = {
        let stream = stream.clone();
        thread::spawn(move || {
            stream.put_line(WORKER, b'v');
            stream.put_line(WORKER, b'w');
        })
    };
    stream.flush_at_exit(MAIN);
    let file = stream.hold(MAIN);
    assert!(b"vvww".starts_with(&file) && file.len().is_multiple_of(2), "{file:?} of the file");
    worker.join().unwrap();
}

/// Bytes that another process sees were pending: a part of "abc" that was in the buffer at one time.
fn inspection(protocol: Protocol) {
    let stream = Arc::new(Stream::new(protocol, false, true));
    let inspector = {
        let stream = stream.clone();
        thread::spawn(move || stream.inspect())
    };
    for byte in *b"abc" {
        stream.putc(MAIN, byte, false);
    }
    stream.flush(MAIN);
    if let Some(bytes) = inspector.join().unwrap() {
        let possible: [&[u8]; 5] = [b"", b"a", b"ab", b"b", b"c"];
        assert!(possible.contains(&&bytes[..]), "{bytes:?} is no part of the file");
    }
}

fn all(protocol: Protocol) {
    let stream = Arc::new(Stream::new(protocol, true, false));
    let spawn = |work: fn(&Stream)| {
        let stream = stream.clone();
        thread::spawn(move || work(&stream))
    };
    let threads = [
        spawn(|stream| stream.put_line(WORKER, b'w')),
        spawn(|stream| stream.put_line(SECOND, b's')),
        spawn(|stream| stream.timer_check(TIMER)),
    ];
    stream.flush_at_exit(MAIN);
    let file = stream.hold(MAIN);
    let whole: [&[u8]; 5] = [b"", b"ww", b"ss", b"wwss", b"ssww"];
    assert!(whole.contains(&&file[..]), "{file:?} of the file");
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Returns the largest number of preemptions, or `None` for any number. `WEIR_MODEL_BOUND` is a number or `none`.
fn bound_of(scenario: Scenario) -> Option<usize> {
    let own = if is_full() { scenario.full_bound } else { scenario.quick_bound };
    std::env::var("WEIR_MODEL_BOUND").map_or(own, |bound| bound.parse().ok())
}

/// Executes the scenario in every order within the bound. Returns the number of executions. Panics at the first order
/// that breaks a promise.
fn check(scenario: Scenario, protocol: Protocol) -> usize {
    let mut builder = Builder::new();
    builder.preemption_bound = bound_of(scenario);
    builder.max_branches = 10_000;
    let executions = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = executions.clone();
    builder.check(move || {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        (scenario.run)(protocol);
    });
    executions.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn the_protocol_keeps_its_promises_in_every_order() {
    let only: Option<usize> =
        std::env::var("WEIR_MODEL_SCENARIO").ok().and_then(|number| number.parse().ok());
    for (number, scenario) in SCENARIOS.into_iter().enumerate() {
        if only.is_some_and(|only| only != number) {
            continue;
        }
        let begun = std::time::Instant::now();
        let executions = check(scenario, Protocol::default());
        let bound = bound_of(scenario)
            .map_or("any number of preemptions".into(), |bound| format!("{bound} preemptions at most"));
        let seconds = begun.elapsed().as_secs_f64();
        say(&format!("C11: {}: {executions} executions, {bound}, {seconds:.1} s\n", scenario.name));
    }
}

/// Runs a scenario without one step, in a process of its own: loom aborts if a thread panics while others are blocked.
/// Returns the first message of the failed check, or nothing if it passed.
fn failure_without(scenario: usize, step: usize) -> Option<String> {
    let this = std::env::current_exe().expect("the test has a path");
    let output = std::process::Command::new(this)
        .args(["--exact", "one_check", "--ignored", "--nocapture", "--test-threads=1"])
        .env(SELECTED, format!("{scenario} {step}"))
        .output()
        .expect("the test starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then_some(errors)
}

const SELECTED: &str = "WEIR_MODEL_SELECTED";

#[test]
#[ignore = "the_check_fails_without_each_step runs it with a selected step"]
fn one_check() {
    let selected = std::env::var(SELECTED).unwrap_or_default();
    let numbers: Vec<usize> = selected.split(' ').filter_map(|number| number.parse().ok()).collect();
    if let [scenario, step] = numbers[..] {
        check(SCENARIOS[scenario], Protocol { without: Some(Step::ALL[step]) });
    }
}

#[test]
fn the_check_fails_without_each_step() {
    let mut covered = Vec::new();
    for (scenario, steps) in SCENARIOS.iter().map(|scenario| scenario.steps).enumerate() {
        for step in steps {
            let number = Step::ALL.iter().position(|other| other == step).expect("ALL has it");
            let failure =
                failure_without(scenario, number).unwrap_or_else(|| panic!("not noticed: {step:?}"));
            let reasons =
                ["Causality violation", "deadlock", "assertion", "repeats bytes", "of the file", "pending"];
            let reason = failure.lines().find(|line| reasons.iter().any(|reason| line.contains(reason)));
            let reason = reason.unwrap_or_else(|| panic!("{step:?}: another failure: {failure}"));
            println!("without {step:?}: {reason}");
            covered.push(*step);
        }
    }
    assert!(Step::ALL.iter().all(|step| covered.contains(step)), "a step that no scenario checks");
}
