//! Does the C library's buffering always win over plain system calls?

use weir_model::bench::BenchAnswer;
use weir_model::{Ratio, Size};

use super::{View, elapsed, figure, list_sizes};
use weir_model::bench::ratio;

/// Compares stdio with read/write at each record size that has both. Returns `None` for fewer than two sizes.
pub(super) fn answer(view: &View) -> Option<BenchAnswer> {
    let mut compared: Vec<(u64, Ratio)> = Vec::new();
    let mut evidence = Vec::new();
    for (index, plain) in view.plain("syscall") {
        let Some(stdio) = view.at("stdio", plain.record_bytes) else { continue };
        if stdio.1.syncs_per_record() != plain.syncs_per_record() {
            continue;
        }
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
    let all: Vec<u64> = compared.iter().map(|&(record, _)| record).collect();
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
        parts.push(format!("it wins at {}", list_sizes(&wins, &all)));
    }
    if !ties.is_empty() {
        parts.push(format!("ties at {}", list_sizes(&ties, &all)));
    }
    if let Some((record, ratio)) = worst {
        let most = if loses.len() > 1 { format!(", most at {}", Size(*record)) } else { String::new() };
        parts.push(format!(
            "loses at {}{most}, where it takes {} the time of {}",
            list_sizes(&loses, &all),
            weir_model::estimate::ratio(ratio),
            view.plain_calls()
        ));
    }
    let verdict = if ties.is_empty() && loses.is_empty() { "Yes, at every size measured" } else { "No" };
    view.answer("Does stdio always win?", format!("{verdict}: {}.", parts.join("; ")), evidence)
}
