//! CPython, whose buffers a walker reads, and PyPy, whose buffers no walker reads.

use crate::runtimes::{Detection, Fixes, Hook, HookVariable, IgnoresEnvironment, RuntimeFacts, RuntimeFix};

static HOOK: Hook = Hook {
    folder: "python",
    file: "sitecustomize.py",
    bytes: include_bytes!("sitecustomize.py"),
    variables: &[HookVariable::PathList("PYTHONPATH")],
    walker_bounds_delay: true,
};

const UNBUFFERED: RuntimeFix = RuntimeFix::Environment {
    variables: &[("PYTHONUNBUFFERED", "1")],
    effect: "PYTHONUNBUFFERED=1: each write goes out at once",
};
const LINE_BUFFERED: RuntimeFix = RuntimeFix::Hook("a sitecustomize makes sys.stdout line-buffered");
const PYPY_BY_LINES: RuntimeFix = RuntimeFix::HookSubstitute(
    "a sitecustomize makes sys.stdout line-buffered: PyPy's buffers cannot be read",
);

/// `-E`, `-I` and `-S`, alone or among other letters.
const IGNORES_ENVIRONMENT: IgnoresEnvironment =
    IgnoresEnvironment::OptionLetters { letters: &['E', 'I', 'S'], end: &["-c", "-m"] };

pub(super) static CPYTHON: RuntimeFacts = RuntimeFacts {
    name: "Python",
    detection: Detection::ProgramNames(&["python"]),
    fixes: Fixes {
        unbuffered: UNBUFFERED,
        line_buffered: LINE_BUFFERED,
        fully_buffered: RuntimeFix::Environment {
            variables: &[("PYTHONUNBUFFERED", "")],
            effect: "Python's own full buffer, of 8 KiB",
        },
        max_delay: RuntimeFix::Outside,
        rescue: RuntimeFix::Outside,
        fork: RuntimeFix::Outside,
        order: UNBUFFERED,
        other_streams: RuntimeFix::Impossible("Python buffers what it reads and opens itself"),
    },
    coalesce_limit: None,
    hook: Some(&HOOK),
    ignores_environment: IGNORES_ENVIRONMENT,
};

pub(super) static PYPY: RuntimeFacts = RuntimeFacts {
    name: "PyPy",
    detection: Detection::ProgramNames(&["pypy"]),
    fixes: Fixes {
        unbuffered: UNBUFFERED,
        line_buffered: LINE_BUFFERED,
        fully_buffered: RuntimeFix::Environment {
            variables: &[("PYTHONUNBUFFERED", "")],
            effect: "PyPy's own full buffer",
        },
        max_delay: PYPY_BY_LINES,
        rescue: PYPY_BY_LINES,
        fork: PYPY_BY_LINES,
        order: UNBUFFERED,
        other_streams: RuntimeFix::Impossible("PyPy buffers what it reads and opens itself"),
    },
    coalesce_limit: None,
    hook: Some(&HOOK),
    ignores_environment: IGNORES_ENVIRONMENT,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_options_make_python_ignore_its_environment() {
        let ignores = |words: &[&str]| {
            let arguments: Vec<std::ffi::OsString> = words.iter().map(Into::into).collect();
            CPYTHON.ignores_environment.applies(&arguments)
        };
        assert!(ignores(&["-I", "x.py"]) && ignores(&["-u", "-sE", "x.py"]));
        assert!(!ignores(&["x.py", "-I"]) && !ignores(&["-u"]) && !ignores(&["-c", "-I"]));
    }
}
