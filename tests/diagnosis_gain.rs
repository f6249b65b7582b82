//! Runs `weir trace` on those pairs of the labelled set whose cost differs, times both without weir, and compares the difference
//! with the gain that weir predicts. The pairs run one at a time, alone on the machine. diagnosis.rs runs the other cases, and its
//! header lists the variables that select cases.

mod common;
#[path = "diagnosis/runner/mod.rs"]
#[allow(dead_code)] // its functions for ordinary runs are not used here
mod runner;

use runner::campaign::{asked, assert_good, judge_again, judge_case};
use runner::score::Score;
use runner::set::cases;
use runner::workspace::{chown_all, user};

#[test]
fn predicted_gains_come_true() {
    let cases = cases();
    let asked = asked(&cases, true, |case| vec![case.finding.to_string()]);
    // Fresh prices: what calls cost while the pairs are timed.
    let prices = tempfile::tempdir().expect("a directory");
    user().into_iter().for_each(|user| chown_all(prices.path(), user).expect("chown"));
    let mut judged: Vec<_> = asked.iter().map(|case| judge_case(case, Some(&prices))).collect();
    let results = asked.iter().map(|case| case.name()).zip(&mut judged).collect();
    judge_again(results, |at| judge_case(asked[at], Some(&prices)));
    assert_good(&Score { cases: asked.into_iter().zip(judged).collect(), ordinary: Vec::new() });
}
