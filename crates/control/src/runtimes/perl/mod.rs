//! Perl: a walker reads the buffers of its PerlIO layers; PERL5OPT loads a hook.

use crate::runtimes::{Detection, Fixes, Hook, HookVariable, IgnoresEnvironment, RuntimeFacts, RuntimeFix};

static HOOK: Hook = Hook {
    folder: "perl",
    file: "WeirRun.pm",
    bytes: include_bytes!("WeirRun.pm"),
    variables: &[HookVariable::PathList("PERL5LIB"), HookVariable::AppendedWord("PERL5OPT", "-MWeirRun")],
    walker_bounds_delay: true,
};

const AUTOFLUSH: RuntimeFix = RuntimeFix::Hook("PERL5OPT loads a module that sets $| = 1");

pub(super) static PERL: RuntimeFacts = RuntimeFacts {
    name: "Perl",
    detection: Detection::ProgramNames(&["perl"]),
    fixes: Fixes {
        unbuffered: AUTOFLUSH,
        line_buffered: AUTOFLUSH,
        fully_buffered: RuntimeFix::NotNeeded(
            "Perl's own buffer is full, of 8 KiB, on everything but a terminal",
        ),
        max_delay: RuntimeFix::Outside,
        rescue: RuntimeFix::Outside,
        fork: RuntimeFix::Outside,
        order: AUTOFLUSH,
        other_streams: RuntimeFix::Impossible("Perl buffers what it reads and opens itself"),
    },
    coalesce_limit: None,
    hook: Some(&HOOK),
    // With -t or -T (taint checks) Perl ignores PERL5OPT and PERL5LIB.
    ignores_environment: IgnoresEnvironment::OptionLetters { letters: &['t', 'T'], end: &["-e"] },
};
