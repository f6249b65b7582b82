//! Tcl: channels of its own, by lines on standard output whatever it is; a hook by TCL_LIBRARY.

use super::{Hook, RuntimeFacts, RuntimeFix, Variable, named};

static HOOK: Hook = Hook {
    folder: "tcl",
    file: "init.tcl",
    bytes: include_bytes!("hooks/init.tcl"),
    variables: &[Variable::Folder("TCL_LIBRARY", "WEIR_TCL_LIBRARY")],
};

const AT_ONCE: RuntimeFix = RuntimeFix::HookStandsIn(
    "TCL_LIBRARY leads to a file that sets -buffering none: nothing waits, and each puts is a call",
);
const UNBUFFERED: RuntimeFix =
    RuntimeFix::Hook("TCL_LIBRARY leads to a file that sets -buffering none on stdout");

pub(super) static RUNTIME: RuntimeFacts = RuntimeFacts {
    name: "Tcl",
    is: |program| named(program, &["tclsh", "wish", "expect"]),
    none: UNBUFFERED,
    line: RuntimeFix::Hook("TCL_LIBRARY leads to a file that sets -buffering line on stdout"),
    full: RuntimeFix::Hook("TCL_LIBRARY leads to a file that sets -buffering full on stdout"),
    delay: AT_ONCE,
    rescue: AT_ONCE,
    fork: RuntimeFix::Already("Tcl has no fork"),
    order: UNBUFFERED,
    others: RuntimeFix::Not("Tcl has buffers of its own for what it reads and opens"),
    hook: Some(&HOOK),
    deaf: super::never,
};
