//! Programs that write through the C library's stdio, which weir changes in place.

use super::{Detection, Fixes, IgnoresEnvironment, RuntimeFacts, RuntimeFix, SourceLanguage};

const STDIO: Fixes = Fixes {
    unbuffered: RuntimeFix::Library,
    line_buffered: RuntimeFix::Library,
    fully_buffered: RuntimeFix::Library,
    max_delay: RuntimeFix::Outside,
    rescue: RuntimeFix::Outside,
    fork: RuntimeFix::Outside,
    order: RuntimeFix::Library,
    other_streams: RuntimeFix::Library,
};

const fn runtime(name: &'static str, detection: Detection, fixes: Fixes) -> RuntimeFacts {
    RuntimeFacts {
        name,
        detection,
        fixes,
        coalesce_limit: None,
        hook: None,
        ignores_environment: IgnoresEnvironment::Never,
    }
}

const fn named(name: &'static str, programs: &'static [&'static str]) -> RuntimeFacts {
    runtime(name, Detection::ProgramNames(programs), STDIO)
}

/// mawk fills its input buffer before it processes the first line of a pipe, unless it is interactive.
const MAWK_INTERACTIVE: RuntimeFix = RuntimeFix::Options {
    options: &["-W", "interactive"],
    effect: "mawk -W interactive: it reads lines as they come and writes them at once",
};

const IOSTREAM_BUFFERS: &str = "std::cout's buffer after sync_with_stdio(false), nor an ofstream's";

/// Interpreters and tools that are recognised by their name. grep needs no --line-buffered, and sed no -u.
pub(super) static NAMED: [RuntimeFacts; 7] = [
    named("gawk", &["gawk"]),
    runtime(
        "mawk",
        Detection::ProgramNames(&["mawk"]),
        Fixes {
            unbuffered: MAWK_INTERACTIVE,
            line_buffered: MAWK_INTERACTIVE,
            max_delay: MAWK_INTERACTIVE,
            ..STDIO
        },
    ),
    named("sed", &["sed", "ssed"]),
    named("grep", &["grep", "egrep", "fgrep", "zgrep"]),
    named("R", &["R", "Rscript"]),
    named("Lua", &["lua", "luajit"]),
    named("shell", &["sh", "dash", "bash", "rbash", "mksh", "ksh", "zsh", "fish", "yash"]),
];

/// std::cout writes through the C library's stdout unless the program calls sync_with_stdio(false).
pub(super) static CPP: RuntimeFacts = runtime(
    "C++",
    Detection::Language(SourceLanguage::Cpp),
    Fixes {
        max_delay: RuntimeFix::OutsideExcept(IOSTREAM_BUFFERS),
        rescue: RuntimeFix::OutsideExcept(IOSTREAM_BUFFERS),
        ..STDIO
    },
);

/// The default: any program that no other entry matches.
pub(super) static C: RuntimeFacts = runtime("C", Detection::AnyProgram, STDIO);
