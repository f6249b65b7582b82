//! Each step of the model quotes the C code that it stands for: finds the quotes in the C functions.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use weir_libweir_model::explorer::program::Source;
use weir_libweir_model::explorer::run::Memory;
use weir_libweir_model::explorer::scenario::{Extent, SCENARIOS};

/// Accesses in functions of the model that are no steps of it, and why.
const NOT_STEPS: [(&str, &str); 20] = [
    ("enter_unshared: atomic_load(&state->in_read)", "reads are not modelled"),
    ("enter_unshared: atomic_load(&state->writer)", "the limit of time"),
    ("hold_streams: atomic_load(&globals->exiting)", "set by this thread"),
    ("wait_for_refs: atomic_load(&state->lock.owner)", "the model's close does not hold the lock"),
    ("wait_for_refs: atomic_load(&state->refs)", "a check before the loop"),
    ("weir__at_exit: atomic_store(&weir__globals->exiting, true)", "streams opened after it"),
    (
        "weir__enter: atomic_load_explicit(&state->in_call, memory_order_relaxed)",
        "only this thread stores it, and calls are not nested",
    ),
    ("weir__enter: atomic_signal_fence(memory_order_seq_cst)", "the order of the steps"),
    (
        "weir__lock_acquire: atomic_load_explicit(&lock->owner, memory_order_relaxed)",
        "a process with one thread",
    ),
    (
        "weir__lock_acquire: atomic_store_explicit(&lock->owner, self, memory_order_relaxed)",
        "a process with one thread",
    ),
    (
        "weir__lock_release_fast: atomic_load_explicit(&weir__membarrier, memory_order_relaxed)",
        "a kernel without membarrier(2)",
    ),
    ("weir__lock_release_fast: atomic_signal_fence( memory_order_seq_cst)", "the order of the steps"),
    (
        "weir__lock_release_slow: atomic_load_explicit(&weir__membarrier, memory_order_relaxed)",
        "a kernel without membarrier(2)",
    ),
    ("weir__lock_release_slow: atomic_thread_fence(memory_order_seq_cst)", "a kernel without membarrier(2)"),
    (
        "weir__membarrier_all: atomic_load_explicit(&weir__membarrier, memory_order_relaxed)",
        "a kernel without membarrier(2)",
    ),
    ("weir__ref_next: __atomic_load_n(&weir__globals, __ATOMIC_ACQUIRE)", "a process without a stream"),
    (
        "weir__reset: atomic_thread_fence(memory_order_release)",
        "for inspection from other processes, which is in the model for loom",
    ),
    (
        "weir__set_limits: __atomic_store_n(&weir__state(s)->locking, true, __ATOMIC_RELEASE)",
        "true already in these models",
    ),
    (
        "weir__set_locking: __atomic_store_n(&weir__config(s)->locking, true, __ATOMIC_RELAXED)",
        "a copy of state->locking",
    ),
    ("weir_putc: WEIR_LOAD(&s->held_limit)", "a process with one thread"),
];

/// Without line breaks and repeated spaces.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

fn text_of(file: &str) -> String {
    let libweir = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = if file == "weir.h" { "include" } else { "src" };
    std::fs::read_to_string(libweir.join(folder).join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns the body of a function, from its `{` to the `}` in the first column or at the end of the same line.
fn body<'a>(text: &'a str, function: &str) -> Option<&'a str> {
    let call = format!("{function}(");
    let starts = text
        .match_indices(&call)
        .map(|(at, _)| at)
        .filter(|at| !text[..*at].ends_with(|before: char| before.is_alphanumeric() || before == '_'));
    let bodies = starts.filter_map(|at| {
        let mut depth = 0;
        let end = text[at..].find(|letter| {
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            letter == ')' && depth == 0
        })?;
        let rest = &text[at + end + 1..];
        rest.trim_start().starts_with('{').then(|| {
            let line = rest.trim_start().lines().next().unwrap_or_default();
            if line.ends_with('}') { line } else { &rest[..rest.find("\n}").unwrap_or(rest.len())] }
        })
    });
    bodies.into_iter().next()
}

/// Returns the C code of all steps.
fn sources() -> HashSet<Source> {
    let machines = SCENARIOS.iter().map(|scenario| scenario.machine(None, Memory::Tso, Extent::Full));
    machines.flat_map(|machine| machine.programs).flat_map(|program| program.sources).collect()
}

/// Returns the calls of atomic accesses in a function's body, from the name to the closing parenthesis.
fn accesses(body: &str) -> Vec<(usize, &str)> {
    const NAMES: [&str; 4] = ["atomic_", "WEIR_LOAD(", "WEIR_PUBLISH(", "WEIR_STORE("];
    let starts = (0..body.len()).filter(|at| {
        let before = body[..*at].chars().next_back().unwrap_or(' ');
        let begins = NAMES
            .iter()
            .any(|name| body[*at..].starts_with(name) || body[*at..].starts_with(&format!("__{name}")));
        begins && !before.is_alphanumeric() && before != '_'
    });
    let end_of = |at: usize| {
        let mut depth = 0;
        body[at..].find(|letter| {
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            letter == ')' && depth == 0
        })
    };
    starts.filter_map(|at| Some((at, &body[at..=at + end_of(at)?]))).collect()
}

#[test]
fn each_atomic_access_of_these_functions_is_a_step_or_said_not_to_be_one() {
    let sources = sources();
    let functions: BTreeSet<(&str, &str)> = sources
        .iter()
        .map(|source| (source.file, source.function))
        .filter(|(_, function)| !function.is_empty())
        .collect();
    let mut found = BTreeSet::new();
    for (file, function) in functions {
        let text = text_of(file);
        let body = plain(body(&text, function).unwrap_or_default());
        let quotes = sources.iter().filter(|source| (source.file, source.function) == (file, function));
        let quoted: Vec<std::ops::Range<usize>> = quotes
            .map(|source| plain(source.text))
            .filter(|quote| !quote.is_empty())
            .flat_map(|quote| {
                body.match_indices(&quote).map(|(at, quote)| at..at + quote.len()).collect::<Vec<_>>()
            })
            .collect();
        for (at, access) in accesses(&body) {
            if !quoted
                .iter()
                .any(|quote| quote.contains(&at) || (at..at + access.len()).contains(&quote.start))
            {
                found.insert(format!("{function}: {access}"));
            }
        }
    }
    let known: BTreeSet<String> = NOT_STEPS.iter().map(|(access, _)| access.to_string()).collect();
    assert_eq!(found, known, "the model, or this list, does not follow the C code");
}

#[test]
fn each_step_quotes_the_function_that_it_stands_for() {
    let sources = sources();
    let (mut quotes, mut missing) = (0, Vec::new());
    for source in sources.iter().filter(|source| !source.function.is_empty()) {
        let text = text_of(source.file);
        let body = body(&text, source.function);
        let body = body.unwrap_or_else(|| panic!("{} has no function {}", source.file, source.function));
        if !plain(body).contains(&plain(source.text)) {
            missing.push(format!("{} {} does not have: {}", source.file, source.function, source.text));
        }
        quotes += usize::from(!source.text.is_empty());
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(quotes > 50, "only {quotes} quotes");
    let functions: HashSet<&str> = sources.iter().map(|source| source.function).collect();
    println!("{quotes} quotes of {} functions", functions.len());
}

#[test]
fn a_quote_that_the_function_does_not_have_is_noticed() {
    let text = "static int one(int a)\n{\n    return a;\n}\n\nint two(void) { return one(2); }\n";
    assert_eq!(body(text, "one").map(plain), Some("{ return a;".into()));
    assert_eq!(body(text, "two").map(plain), Some("{ return one(2); }".into()));
    assert_eq!(body(text, "ne"), None);
}
