//! Does the C library's buffering always win over plain system calls?

use weir_model::{Ratio, Size};

use super::{View, elapsed, figure};
use crate::rows::ratio;
use weir_model::bench::BenchAnswer;

/// Compares stdio with read/write at each record size that has both. Returns `None` for fewer than two sizes.
pub(super) fn answer(view: &View) -> Option<BenchAnswer> {
    let mut compared: Vec<(u64, Ratio)> = Vec::new();
    let mut evidence = Vec::new();
    for (index, plain) in view.plain("syscall") {
        let Some(stdio) = view.at("stdio", plain.record_bytes) else { continue };
        let Some(ratio) = ratio(stdio.1, plain) else { continue };
        evidence.extend([
            elapsed((index, plain)),
            elapsed(stdio),
            figure(Some(index), "stdio_over_syscall", ratio.value),
        ]);
        compared.push((plain.record_bytes, ratio));
    }
    compared.sort_by_key(|&(record, _)| record);
    if compared.len() < 2 {
        return None;
    }
    let sizes = |which: &dyn Fn(&Ratio) -> bool| -> Vec<u64> {
        compared.iter().filter(|(_, ratio)| which(ratio)).map(|&(record, _)| record).collect()
    };
    let wins = sizes(&|ratio| !ratio.is_tie(view.noise) && ratio.value < 1.0);
    let ties = sizes(&|ratio| ratio.is_tie(view.noise));
    let loses = sizes(&|ratio| !ratio.is_tie(view.noise) && ratio.value > 1.0);
    let worst = compared
        .iter()
        .filter(|(record, _)| loses.contains(record))
        .max_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let mut parts = Vec::new();
    if !wins.is_empty() {
        parts.push(format!("it wins at {}", list(&wins)));
    }
    if !ties.is_empty() {
        parts.push(format!("ties at {}", list(&ties)));
    }
    if let Some((record, ratio)) = worst {
        let percent = (ratio.value - 1.0) * 100.0;
        parts.push(format!(
            "loses at {}, most at {}, where read/write is {percent:.0} % faster",
            list(&loses),
            Size(*record)
        ));
    }
    let verdict = if ties.is_empty() && loses.is_empty() { "Yes, at every size measured" } else { "No" };
    view.answer("Does stdio always win?", format!("{verdict}: {}.", parts.join("; ")), evidence)
}

/// Returns ascending sizes as text: `1 B`, `1 B and 2 B`, or `1 B to 2 KiB` for three and more.
fn list(sizes: &[u64]) -> String {
    match sizes {
        [] => String::new(),
        [one] => Size(*one).to_string(),
        [first, .., last] if sizes.len() > 2 => format!("{} to {}", Size(*first), Size(*last)),
        [first, second] => format!("{} and {}", Size(*first), Size(*second)),
        _ => String::new(),
    }
}
