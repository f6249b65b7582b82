//! Tcl: its channels have their own buffers and default to line buffering; TCL_LIBRARY loads a hook.

use crate::runtimes::{Detection, Fixes, Hook, HookVariable, IgnoresEnvironment, RuntimeFacts, RuntimeFix};

static HOOK: Hook = Hook {
    folder: "tcl",
    file: "init.tcl",
    bytes: include_bytes!("init.tcl"),
    variables: &[HookVariable::ReplacedFolder { variable: "TCL_LIBRARY", saved_as: "WEIR_TCL_LIBRARY" }],
    walker_bounds_delay: false,
};

const UNBUFFERED: RuntimeFix =
    RuntimeFix::Hook("TCL_LIBRARY leads to a file that sets -buffering none on stdout");
const UNBUFFERED_SUBSTITUTE: RuntimeFix = RuntimeFix::HookSubstitute(
    "TCL_LIBRARY leads to a file that sets -buffering none: no byte stays pending, and each puts is a call",
);

pub(super) static TCL: RuntimeFacts = RuntimeFacts {
    name: "Tcl",
    detection: Detection::ProgramNames(&["tclsh", "wish", "expect"]),
    fixes: Fixes {
        unbuffered: UNBUFFERED,
        line_buffered: RuntimeFix::Hook("TCL_LIBRARY leads to a file that sets -buffering line on stdout"),
        fully_buffered: RuntimeFix::Hook("TCL_LIBRARY leads to a file that sets -buffering full on stdout"),
        max_delay: UNBUFFERED_SUBSTITUTE,
        rescue: UNBUFFERED_SUBSTITUTE,
        fork: RuntimeFix::NotNeeded("Tcl has no fork"),
        order: UNBUFFERED,
        other_streams: RuntimeFix::Impossible("Tcl buffers what it reads and opens itself"),
    },
    coalesce_limit: None,
    hook: Some(&HOOK),
    ignores_environment: IgnoresEnvironment::Never,
};
