//! Node: process.stdout has no buffer.

use super::{Detection, Fixes, IgnoresEnvironment, RuntimeFacts, RuntimeFix};

const NOT_NEEDED: RuntimeFix = RuntimeFix::NotNeeded(
    "process.stdout writes to files and pipes at once; weir cannot see what the program collects itself",
);

pub(super) static NODE: RuntimeFacts = RuntimeFacts {
    name: "Node",
    detection: Detection::ProgramNames(&["node", "nodejs"]),
    fixes: Fixes {
        unbuffered: NOT_NEEDED,
        line_buffered: NOT_NEEDED,
        fully_buffered: RuntimeFix::Impossible("process.stdout has no buffer"),
        max_delay: NOT_NEEDED,
        rescue: NOT_NEEDED,
        fork: NOT_NEEDED,
        order: NOT_NEEDED,
        other_streams: RuntimeFix::Impossible(
            "Node makes its calls itself: its streams cannot get another buffer from outside",
        ),
    },
    coalesce_limit: Some("Node has several threads: one could reveal what another has not written yet"),
    hook: None,
    ignores_environment: IgnoresEnvironment::Never,
};
