//! PHP: the command line's output has no buffer.

use super::{Detection, Fixes, IgnoresEnvironment, RuntimeFacts, RuntimeFix};

const NOT_NEEDED: RuntimeFix =
    RuntimeFix::NotNeeded("PHP writes at once on the command line, unless output_buffering is set");

pub(super) static PHP: RuntimeFacts = RuntimeFacts {
    name: "PHP",
    detection: Detection::ProgramNames(&["php"]),
    fixes: Fixes {
        unbuffered: NOT_NEEDED,
        line_buffered: NOT_NEEDED,
        fully_buffered: RuntimeFix::Impossible(
            "PHP has no buffer on the command line: use --coalesce, or ob_start() in the program",
        ),
        max_delay: NOT_NEEDED,
        rescue: NOT_NEEDED,
        fork: NOT_NEEDED,
        order: NOT_NEEDED,
        other_streams: RuntimeFix::Impossible(
            "PHP makes its calls itself: its streams cannot get another buffer from outside",
        ),
    },
    coalesce_limit: None,
    hook: None,
    ignores_environment: IgnoresEnvironment::Never,
};
