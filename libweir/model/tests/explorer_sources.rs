//! Each step of the model quotes the C code that it stands for: finds the quotes in the C functions.

use std::collections::HashSet;
use std::path::Path;
use weir_libweir_model::explorer::program::Source;
use weir_libweir_model::explorer::run::Memory;
use weir_libweir_model::explorer::scenario::{Extent, SCENARIOS};

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

#[test]
fn each_step_quotes_the_function_that_it_stands_for() {
    let machines = SCENARIOS.iter().map(|scenario| scenario.machine(None, Memory::Tso, Extent::Full));
    let sources: HashSet<Source> =
        machines.flat_map(|machine| machine.programs).flat_map(|program| program.sources).collect();
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
