//! What does a cold cache cost?

use weir_model::Size;
use weir_model::duration::three_digits;

use super::{Numbered, View, elapsed, figure, name, seconds};
use weir_model::bench::BenchAnswer;

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
    let mut compared: Vec<(f64, Numbered, Numbered)> = Vec::new();
    for &cold in &view.rows {
        if let Some(other) = warm.at(&cold.1.method, cold.1.record_bytes) {
            compared.push((seconds(cold.1) / seconds(other.1), cold, other));
        }
    }
    let (most, cold, other) = *compared.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (least, ..) = *compared.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let text = format!(
        "Cold, {} at {} takes {}× the warm time, the most of all rows; the least is {}×: the smaller the records, the \
         more the calls hide the device.",
        name(cold.1),
        Size(cold.1.record_bytes),
        three_digits(most),
        three_digits(least)
    );
    view.answer(
        "What does a cold cache cost?",
        text,
        vec![elapsed(cold), elapsed(other), figure(None, "slower", most)],
    )
}
