//! Ruby: buffers of its own, which are known from outside in version 3.1 only; a hook by RUBYOPT.

use super::{Hook, RuntimeFacts, RuntimeFix, Variable, named};

static HOOK: Hook = Hook {
    folder: "ruby",
    file: "weir_run.rb",
    bytes: include_bytes!("hooks/weir_run.rb"),
    variables: &[Variable::List("RUBYLIB"), Variable::Word("RUBYOPT", "-rweir_run")],
};

const SYNC: RuntimeFix = RuntimeFix::Hook("RUBYOPT loads a file that sets STDOUT.sync");

pub(super) static RUNTIME: RuntimeFacts = RuntimeFacts {
    name: "Ruby",
    is: |program| named(program, &["ruby"]),
    none: SYNC,
    line: SYNC,
    full: RuntimeFix::Already("Ruby's own buffer is full, of 8 KiB, on everything but a terminal"),
    delay: RuntimeFix::Hook("RUBYOPT loads a file with a thread that flushes STDOUT"),
    rescue: RuntimeFix::HookStandsIn(
        "RUBYOPT loads a thread that flushes STDOUT every 10 ms; what waits at the end is read from outside in \
         Ruby 3.1 and lost in others, whose buffers are not known",
    ),
    fork: RuntimeFix::Already("Ruby itself flushes STDOUT before a fork"),
    order: SYNC,
    others: RuntimeFix::Not("Ruby has buffers of its own for what it reads and opens"),
    hook: Some(&HOOK),
    deaf: |program| {
        program.arguments.iter().any(|word| word == "--disable-all" || word == "--disable=rubyopt")
    },
};
