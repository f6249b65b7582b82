//! What does a cold cache cost?

use weir_model::bench::BenchAnswer;
use weir_model::{Ratio, Size, estimate};

use super::{Numbered, View, elapsed, figure, name};
use weir_model::bench::ratio;

pub(super) fn answer(view: &View) -> Option<BenchAnswer> {
    let key = &view.group.key;
    if key.cache != "cold" {
        return None;
    }
    let warm = view.sibling(|other| {
        let other = &other.key;
        other.cache == "warm"
            && (&other.workload, &other.fs, &other.dir, &other.sync)
                == (&key.workload, &key.fs, &key.dir, &key.sync)
            && (&other.advice, other.bytes) == (&key.advice, key.bytes)
    })?;
    let mut compared: Vec<(Ratio, Numbered, Numbered)> = Vec::new();
    for &cold in &view.rows {
        let Some(other) = warm.at(&cold.1.method, cold.1.record_bytes) else { continue };
        compared.extend(ratio(cold.1, other.1).map(|ratio| (ratio, cold, other)));
    }
    let (most, cold, other) = *compared.iter().max_by(|a, b| a.0.value.total_cmp(&b.0.value))?;
    let (least, least_row, _) = *compared.iter().min_by(|a, b| a.0.value.total_cmp(&b.0.value))?;
    let evidence = vec![elapsed(cold), elapsed(other), figure(None, "slower", most.value)];
    let at = |row: Numbered| format!("{} at {}", name(row.1), Size(row.1.record_bytes));
    if most.is_tie(view.noise) {
        let text = format!(
            "Nothing that can be measured: cold, {} takes {} the warm time, within the noise.",
            at(cold),
            estimate::ratio(&most)
        );
        return view.answer("What does a cold cache cost?", text, evidence);
    }
    let mut text =
        format!("Cold, {} takes {} the warm time, the most of all rows", at(cold), estimate::ratio(&most));
    if least.ci95[1] < most.ci95[0] {
        let noise = if least.is_tie(view.noise) { ", within the noise" } else { ", the least" };
        text += &format!("; {} takes {}{noise}", at(least_row), estimate::ratio(&least));
        if least_row.1.record_bytes < cold.1.record_bytes && least_row.1.method == cold.1.method {
            text += ": with small records the calls take longer than the device";
        }
    }
    view.answer("What does a cold cache cost?", text + ".", evidence)
}
