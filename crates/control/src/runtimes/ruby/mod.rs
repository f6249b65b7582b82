//! Ruby: a walker reads the buffers of version 3.1 only; RUBYOPT loads a hook.

use crate::runtimes::{Detection, Fixes, Hook, HookVariable, IgnoresEnvironment, RuntimeFacts, RuntimeFix};

static HOOK: Hook = Hook {
    folder: "ruby",
    file: "weir_run.rb",
    bytes: include_bytes!("weir_run.rb"),
    variables: &[HookVariable::PathList("RUBYLIB"), HookVariable::AppendedWord("RUBYOPT", "-rweir_run")],
    walker_bounds_delay: false,
};

const SYNC: RuntimeFix = RuntimeFix::Hook("RUBYOPT loads a file that sets STDOUT.sync");

pub(super) static RUBY: RuntimeFacts = RuntimeFacts {
    name: "Ruby",
    detection: Detection::ProgramNames(&["ruby"]),
    fixes: Fixes {
        unbuffered: SYNC,
        line_buffered: SYNC,
        fully_buffered: RuntimeFix::NotNeeded(
            "Ruby's own buffer is full, of 8 KiB, on everything but a terminal",
        ),
        max_delay: RuntimeFix::Hook("RUBYOPT loads a file with a thread that flushes STDOUT"),
        rescue: RuntimeFix::HookSubstitute(
            "RUBYOPT loads a thread that flushes STDOUT every 10 ms; the bytes pending at the end are rescued in \
             Ruby 3.1, and lost in other versions, whose buffers weir cannot read",
        ),
        fork: RuntimeFix::NotNeeded("Ruby itself flushes STDOUT before a fork"),
        order: SYNC,
        other_streams: RuntimeFix::Impossible("Ruby buffers what it reads and opens itself"),
    },
    coalesce_limit: Some("Ruby handles SIGSYS, the signal by which calls would be intercepted"),
    hook: Some(&HOOK),
    ignores_environment: IgnoresEnvironment::Words(&["--disable-all", "--disable=rubyopt"]),
};
