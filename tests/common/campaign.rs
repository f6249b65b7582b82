//! Campaigns: tests over many cases. `make test` sets $WEIR_CAMPAIGN to `quick`, and a campaign runs a subset in which
//! every property of its cases occurs; otherwise it runs all cases, as in `make test-all`.

use std::collections::BTreeSet;
use std::io::Write;

/// Returns true if $WEIR_CAMPAIGN asks for a subset.
pub fn is_quick() -> bool {
    has_extent("quick")
}

/// Returns true if $WEIR_CAMPAIGN asks for the long forms.
pub fn is_full() -> bool {
    has_extent("full")
}

fn has_extent(wanted: &str) -> bool {
    std::env::var("WEIR_CAMPAIGN").is_ok_and(|extent| extent == wanted)
}

/// In a quick campaign removes the cases whose properties all occur in earlier cases, and prints how many it removes.
/// `properties` lists the properties of a case, such as its program and its mode.
pub fn choose<T>(campaign: &str, cases: &mut Vec<T>, properties: impl Fn(&T) -> Vec<String>) {
    if !is_quick() {
        return;
    }
    let all = cases.len();
    let mut covered = BTreeSet::new();
    cases.retain(|case| {
        properties(case).into_iter().map(|property| covered.insert(property)).filter(|&new| new).count() > 0
    });
    let line = format!("campaign: {campaign}: {} of {all} cases; make test-all runs all\n", cases.len());
    // println! is captured by the test harness, and shown for failed tests only.
    std::io::stdout().write_all(line.as_bytes()).expect("standard output");
}
