//! Rust: stdout is line-buffered, which a walker reads; a BufWriter belongs to the program.

use super::{Detection, Fixes, IgnoresEnvironment, RuntimeFacts, RuntimeFix, SourceLanguage};

const UNREADABLE: &str = "the program's own BufWriter, nor stdout when the program has no symbols";
const OUTSIDE: RuntimeFix = RuntimeFix::OutsideExcept(UNREADABLE);

pub(super) static RUST: RuntimeFacts = RuntimeFacts {
    name: "Rust",
    detection: Detection::Language(SourceLanguage::Rust),
    fixes: Fixes {
        unbuffered: OUTSIDE,
        line_buffered: RuntimeFix::NotNeeded(
            "Rust's stdout writes each line; weir cannot reach the program's own BufWriter",
        ),
        fully_buffered: RuntimeFix::Impossible("Rust's stdout always writes line by line: use --coalesce"),
        max_delay: OUTSIDE,
        rescue: OUTSIDE,
        fork: OUTSIDE,
        order: RuntimeFix::Impossible(
            "Rust's stdout has its own buffer, which cannot be removed from outside",
        ),
        other_streams: RuntimeFix::Impossible("Rust buffers what it reads and opens itself"),
    },
    coalesce_limit: None,
    hook: None,
    ignores_environment: IgnoresEnvironment::Never,
};
