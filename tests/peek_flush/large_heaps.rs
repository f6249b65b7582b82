//! Searches of more memory than a search reads at once.

use std::process::Command;

use crate::common::{run, text};
use crate::flush;
use crate::programs::{Program, built};

/// A large heap hides no buffer, and where crafted memory makes the search too long, weir says so.
#[test]
fn what_was_not_searched_is_said() {
    let test = "what_was_not_searched_is_said";
    let Some(path) = built(test, "g++", &[], "heap.cc") else { return };
    let peek = |program: &Program| text(&run(program.dir(), &["peek", &program.pid().to_string()]).stdout);
    let mut program = Program::start(Command::new(&path).args(["large", "100"]));
    let shown = peek(&program);
    assert!(shown.contains("\"abc\"") && !shown.contains("not searched"), "{shown}");
    assert!(flush(&program, &[]).status.success());
    assert_eq!(program.out(), "abc");
    assert_eq!((program.end(), program.out()), (Some(0), "abcdef".to_string()));
    let program = Program::start(Command::new(&path).args(["tables", "400"]));
    let missing = "buffers in the part of the memory that was not searched";
    assert!(peek(&program).contains(missing), "{}", peek(&program));
    let output = flush(&program, &["--json", "-"]);
    assert!(text(&output.stdout).contains(missing), "{}", text(&output.stdout));
}
