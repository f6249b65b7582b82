//! Go: os.Stdout has no buffer; a bufio.Writer belongs to the program. System calls bypass libc.

use super::{Detection, Fixes, IgnoresEnvironment, RuntimeFacts, RuntimeFix, SourceLanguage};

const NOT_NEEDED: RuntimeFix =
    RuntimeFix::NotNeeded("os.Stdout writes at once; weir cannot reach the program's own bufio.Writer");
const IMPOSSIBLE: RuntimeFix = RuntimeFix::Impossible(
    "Go makes its system calls itself and has no streams to change: use a bufio.Writer in the program",
);

pub(super) static GO: RuntimeFacts = RuntimeFacts {
    name: "Go",
    detection: Detection::Language(SourceLanguage::Go),
    fixes: Fixes {
        unbuffered: NOT_NEEDED,
        line_buffered: NOT_NEEDED,
        fully_buffered: IMPOSSIBLE,
        max_delay: NOT_NEEDED,
        rescue: NOT_NEEDED,
        fork: NOT_NEEDED,
        order: NOT_NEEDED,
        other_streams: IMPOSSIBLE,
    },
    coalesce_limit: Some("Go makes its system calls itself: they bypass libc"),
    hook: None,
    ignores_environment: IgnoresEnvironment::Never,
};
