//! Java: System.out has no buffer; a BufferedWriter belongs to the program and no walker reads it.

use super::{Detection, Fixes, IgnoresEnvironment, RuntimeFacts, RuntimeFix};

const NOT_NEEDED: RuntimeFix =
    RuntimeFix::NotNeeded("System.out writes at once; weir cannot reach the program's own BufferedWriter");

pub(super) static JAVA: RuntimeFacts = RuntimeFacts {
    name: "Java",
    detection: Detection::ProgramNames(&["java"]),
    fixes: Fixes {
        unbuffered: NOT_NEEDED,
        line_buffered: NOT_NEEDED,
        fully_buffered: RuntimeFix::Impossible("System.out has no buffer"),
        max_delay: NOT_NEEDED,
        rescue: NOT_NEEDED,
        fork: NOT_NEEDED,
        order: NOT_NEEDED,
        other_streams: RuntimeFix::Impossible(
            "Java makes its calls itself: its streams cannot get another buffer from outside",
        ),
    },
    coalesce_limit: Some("Java has several threads: one could reveal what another has not written yet"),
    hook: None,
    ignores_environment: IgnoresEnvironment::Never,
};
