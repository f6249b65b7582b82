//! CPython: buffers of its own, which a walker reads; switches in its environment.

use super::{Hook, RuntimeFacts, RuntimeFix, Variable, named};
use crate::plan::program::ResolvedProgram;

const UNBUFFERED: RuntimeFix =
    RuntimeFix::Variables(&[("PYTHONUNBUFFERED", "1")], "PYTHONUNBUFFERED=1: each write goes out at once");

pub(super) static HOOK: Hook = Hook {
    folder: "python",
    file: "sitecustomize.py",
    bytes: include_bytes!("hooks/sitecustomize.py"),
    variables: &[Variable::List("PYTHONPATH")],
};

pub(super) static RUNTIME: RuntimeFacts = RuntimeFacts {
    name: "Python",
    is: |program| named(program, &["python"]),
    none: UNBUFFERED,
    line: RuntimeFix::Hook("a sitecustomize that makes sys.stdout line-buffered"),
    full: RuntimeFix::Variables(&[("PYTHONUNBUFFERED", "")], "its own full buffer, of 8 KiB"),
    delay: RuntimeFix::Outside,
    rescue: RuntimeFix::Outside,
    fork: RuntimeFix::Outside,
    order: UNBUFFERED,
    others: RuntimeFix::Not("Python has buffers of its own for what it reads and opens"),
    hook: Some(&HOOK),
    deaf: ignores_environment,
};

/// -E, -I and -S, alone or among other letters.
pub(super) fn ignores_environment(program: &ResolvedProgram) -> bool {
    let options = program.arguments.iter().map(|word| word.to_string_lossy());
    { options }
        .take_while(|word| word.starts_with('-') && word != "-c" && word != "-m")
        .any(|word| !word.starts_with("--") && word.contains(['E', 'I', 'S']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_make_it_deaf() {
        let deaf = |words: &[&str]| {
            let arguments = words.iter().map(Into::into).collect();
            ignores_environment(&ResolvedProgram { arguments, ..ResolvedProgram::default() })
        };
        assert!(deaf(&["-I", "x.py"]) && deaf(&["-u", "-sE", "x.py"]));
        assert!(!deaf(&["x.py", "-I"]) && !deaf(&["-u"]) && !deaf(&["-c", "-I"]));
    }
}
