//! Environment variables that only tests of the engine set (tests/kernels).

use std::env;

/// Names of BPF programs that must not be selected, separated by commas: tries the hooks of older kernels on newer ones.
const SKIP: &str = "WEIR_EBPF_SKIP";
/// Assumed nanoseconds of a recorded call: makes a program on a slow virtual machine busy enough for sampling.
const CALL_NS: &str = "WEIR_EBPF_CALL_NS";

/// Set to any value: selects the object for kernels before Linux 6.1 on newer ones.
const OLD_OBJECT: &str = "WEIR_EBPF_OLD";

/// Returns whether the object for kernels before Linux 6.1 is selected on every kernel.
pub(super) fn takes_old_object() -> bool {
    env::var_os(OLD_OBJECT).is_some()
}

/// Returns the names of the BPF programs that must not be selected.
pub(super) fn skipped_programs() -> Vec<String> {
    let names = env::var(SKIP).unwrap_or_default();
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Returns the assumed cost of a recorded call, if a test has set it.
pub(super) fn call_cost_ns() -> Option<u64> {
    env::var(CALL_NS).ok()?.parse().ok()
}
