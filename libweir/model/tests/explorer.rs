//! Visits every state of the protocol on x86-64's memory model, and finds a broken promise without each of its rules.

use std::io::Write;
use weir_libweir_model::explorer::rules::{Options, Rule};
use weir_libweir_model::explorer::run::Memory;
use weir_libweir_model::explorer::scenario::{Extent, SCENARIOS, Scenario};
use weir_libweir_model::explorer::search::{Report, explore};

/// `make test` explores small scenarios; a full campaign larger ones.
fn extent() -> Extent {
    match std::env::var("WEIR_CAMPAIGN").is_ok_and(|campaign| campaign == "full") {
        true => Extent::Full,
        false => Extent::Quick,
    }
}

/// println! is captured by the test harness, and shown for failed tests only.
fn say(line: &str) {
    std::io::stdout().write_all(line.as_bytes()).expect("standard output");
}

/// A number in `WEIR_MODEL_SCENARIO`: only this scenario, from 0.
fn chosen() -> impl Iterator<Item = &'static Scenario> {
    static ALL: [Scenario; SCENARIOS.len()] = SCENARIOS;
    let only = std::env::var("WEIR_MODEL_SCENARIO").ok().and_then(|number| number.parse().ok());
    ALL.iter()
        .enumerate()
        .filter(move |(number, _)| only.is_none_or(|only: usize| only == *number))
        .map(|(_, scenario)| scenario)
}

/// Explores the scenario. Panics with the shortest trace to a broken promise.
fn check(scenario: &Scenario, memory: Memory, extent: Extent) {
    let begun = std::time::Instant::now();
    let machine = scenario.machine(None, memory, extent);
    let Report { states, transitions, ends, violation } = explore(&machine);
    if let Some(violation) = violation {
        panic!("{}: {}\n{}", scenario.name, violation.reason, violation.trace.join("\n"));
    }
    assert!(ends > 0, "{}: no end is reachable", scenario.name);
    let (seconds, name) = (begun.elapsed().as_secs_f64(), scenario.name);
    let unordered = if machine.unordered.get() { ", oldest values without their order" } else { "" };
    say(&format!(
        "{memory:?}, {extent:?}: {name}: {states} states, {transitions} transitions{unordered}, {seconds:.1} s\n"
    ));
}

#[test]
fn every_state_keeps_the_promises() {
    chosen().for_each(|scenario| check(scenario, Memory::Tso, extent()));
}

/// `make test` explores those scenarios that have a rule about the order of stores.
#[test]
fn every_state_keeps_the_promises_with_stores_out_of_order() {
    let has_order =
        |scenario: &&Scenario| scenario.rules.iter().any(|rule| Options::memory(*rule) == Memory::Relaxed);
    let scenarios = chosen().filter(|scenario| extent() == Extent::Full || has_order(scenario));
    scenarios.for_each(|scenario| check(scenario, Memory::Relaxed, Extent::Quick));
}

/// The same with loads that return old values. `make test` leaves out the larger one of the three, with 4 million states.
#[test]
fn every_state_keeps_the_promises_with_loads_out_of_order() {
    let is_small = |scenario: &&Scenario| {
        [Rule::LockAcquire, Rule::DrainAcquire].iter().any(|rule| scenario.rules.contains(rule))
    };
    let scenarios = chosen().filter(|scenario| extent() == Extent::Full || is_small(scenario));
    scenarios.for_each(|scenario| check(scenario, Memory::Unordered, Extent::Quick));
}

/// Returns the trace to the promise that the scenario breaks without the rule, of which the first line is the promise.
fn broken(scenario: &Scenario, rule: Rule, memory: Memory) -> Vec<String> {
    let report = explore(&scenario.machine(Some(rule), memory, Extent::Quick));
    let violation =
        report.violation.unwrap_or_else(|| panic!("{}: {memory:?}: not noticed: {rule:?}", scenario.name));
    assert!(!violation.trace.is_empty(), "no trace");
    [vec![format!("without {rule:?}: {}", violation.reason)], violation.trace].concat()
}

/// Old values must not hide a broken rule: the search with loads out of order finds each rule that its scenario checks.
/// `make test` tries the first of each scenario.
#[test]
fn the_search_with_loads_out_of_order_fails_without_each_rule() {
    let rules = if extent() == Extent::Full { usize::MAX } else { 1 };
    for scenario in chosen() {
        for rule in scenario.rules.iter().take(rules) {
            println!("{}", broken(scenario, *rule, Memory::Unordered).join("\n  "));
        }
    }
}

#[test]
fn the_search_fails_without_each_rule() {
    let mut covered = Vec::new();
    for scenario in SCENARIOS {
        for rule in scenario.rules {
            println!("{}", broken(&scenario, *rule, Options::memory(*rule)).join("\n  "));
            covered.push(*rule);
        }
    }
    assert!(Rule::ALL.iter().all(|rule| covered.contains(rule)), "a rule that no scenario checks");
}

/// The barriers of waiters and of exit are only needed because stores wait in buffers: without the buffers no promise is
/// broken. So the search executes x86-TSO, and not only every order of the threads.
#[test]
fn barriers_matter_on_x86_tso_only() {
    for rule in [Rule::WaiterBarrier, Rule::ExitBarrier] {
        let scenario =
            SCENARIOS.iter().find(|scenario| scenario.rules.contains(&rule)).expect("it is covered");
        let report = explore(&scenario.machine(Some(rule), Memory::Sc, Extent::Quick));
        assert!(report.violation.is_none(), "{rule:?}: {:?}", report.violation);
    }
}
