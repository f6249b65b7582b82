//! What does it cost that bytes survive a power cut?

use weir_model::bench::{BenchAnswer, BenchRow, RowGroup};
use weir_model::{Durability, Ratio, Size, estimate};

use super::{Numbered, View, elapsed, figure, name, seconds};
use crate::axes::SyncKind;
use crate::groups::is_without_sync;
use weir_model::bench::ratio;

/// Largest median error of the cost model, as a share, for a price of one sync.
const MAX_FIT_ERROR: f64 = 0.1;

pub(super) fn answer(view: &View) -> Option<BenchAnswer> {
    let kind: SyncKind = view.group.key.sync.parse().ok()?;
    if kind == SyncKind::None {
        return None;
    }
    let key = &view.group.key;
    let plain = view.sibling(|other| is_without_sync(&other.key, key))?;
    let mut compared: Vec<(Ratio, Numbered, Numbered)> = Vec::new();
    for row in view.comparable() {
        let Some(other) = plain.at(&row.1.method, row.1.record_bytes) else { continue };
        compared.extend(per_byte(row.1, other.1).map(|slower| (slower, row, other)));
    }
    let (slower, row, other) = *compared.iter().max_by(|a, b| a.0.value.total_cmp(&b.0.value))?;
    let durable = match kind.durability() {
        Durability::Data | Durability::Full => String::new(),
        _ => " It makes nothing durable: neither the device's cache nor the metadata is flushed.".into(),
    };
    let compared = match slower.is_tie(view.noise) {
        true => format!("{} the time without it, within the noise", estimate::ratio(&slower)),
        false => format!("{} the time without it", estimate::ratio(&slower)),
    };
    let waiting = waiting_share(row.1);
    let per = if row.1.syncs_per_record() { "" } else { " (it syncs per buffer, not per record)" };
    let text = format!(
        "{} with {} at {}: {} a record{per}, {compared}.{}{}{durable}",
        if kind == SyncKind::End { "One fsync at the end" } else { &key.sync },
        name(row.1),
        Size(row.1.record_bytes),
        a_record(row.1),
        waiting_text(waiting),
        price(view.group).unwrap_or_default()
    );
    let [low, high] = waiting;
    let evidence = vec![
        elapsed(row),
        elapsed(other),
        figure(None, "slower", slower.value),
        figure(Some(row.0), "waiting_share", (low + high) / 2.0),
    ];
    view.answer("What does durability cost?", text, evidence)
}

/// Returns the ratio of the times for one byte: groups with syncs may move fewer bytes.
fn per_byte(row: &BenchRow, other: &BenchRow) -> Option<Ratio> {
    let scale = other.group.bytes as f64 / row.group.bytes as f64;
    let Ratio { n, value, ci95 } = ratio(row, other)?;
    Some(Ratio { n, value: value * scale, ci95: ci95.map(|end| end * scale) })
}

/// Returns the time of one record.
fn a_record(row: &BenchRow) -> String {
    let records = row.group.bytes.div_ceil(row.record_bytes) as f64;
    let ci95 = row.elapsed_s.map_or([0.0; 2], |elapsed| elapsed.ci95);
    estimate::seconds(seconds(row) / records, ci95.map(|end| end / records))
}

/// Returns the least and the largest share of a row's time in which it did not use the CPU, by the intervals of both times.
fn waiting_share(row: &BenchRow) -> [f64; 2] {
    let (Some(elapsed), Some(cpu)) = (row.elapsed_s, row.cpu_s) else { return [0.0; 2] };
    let share = |cpu_s: f64, elapsed_s: f64| (1.0 - cpu_s / elapsed_s).clamp(0.0, 1.0);
    [share(cpu.ci95[1], elapsed.ci95[0]), share(cpu.ci95[0], elapsed.ci95[1])]
}

fn waiting_text([low, high]: [f64; 2]) -> String {
    let percent = [low, high].map(|share| format!("{:.0}", share * 100.0));
    match percent {
        [low, high] if low == high => format!(" {low} % of that is waiting, not work."),
        [low, high] => format!(" {low} to {high} % of that is waiting, not work."),
    }
}

/// Returns the price of one sync by the cost model; `None` if the model fits badly.
fn price(group: &RowGroup) -> Option<String> {
    let model = group.model.filter(|model| model.sync_ns > 0.0 && model.fit.median_error <= MAX_FIT_ERROR)?;
    let ci95 = group.model_ci95.map(|prices| prices.sync_ns);
    Some(format!(" One sync costs {}.", estimate::price(model.sync_ns, ci95)))
}
