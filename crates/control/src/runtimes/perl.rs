//! Perl: layers of its own, which a walker reads; a hook by PERL5OPT.

use super::{Hook, RuntimeFacts, RuntimeFix, Variable, named};

static HOOK: Hook = Hook {
    folder: "perl",
    file: "WeirRun.pm",
    bytes: include_bytes!("hooks/WeirRun.pm"),
    variables: &[Variable::List("PERL5LIB"), Variable::Word("PERL5OPT", "-MWeirRun")],
};

const AUTOFLUSH: RuntimeFix = RuntimeFix::Hook("PERL5OPT loads a module that sets $| = 1");

pub(super) static RUNTIME: RuntimeFacts = RuntimeFacts {
    name: "Perl",
    is: |program| named(program, &["perl"]),
    none: AUTOFLUSH,
    line: AUTOFLUSH,
    full: RuntimeFix::Already("Perl's own buffer is full, of 8 KiB, on everything but a terminal"),
    delay: RuntimeFix::Outside,
    rescue: RuntimeFix::Outside,
    fork: RuntimeFix::Outside,
    order: AUTOFLUSH,
    others: RuntimeFix::Not("Perl has buffers of its own for what it reads and opens"),
    hook: Some(&HOOK),
    // Taint checks: Perl then looks at no variable.
    deaf: |program| {
        let options = program.arguments.iter().map(|word| word.to_string_lossy());
        { options }
            .take_while(|word| word.starts_with('-') && word != "-e")
            .any(|word| word.contains(['t', 'T']))
    },
};
