//! What does it cost that bytes survive a power cut?

use weir_model::duration::{format_seconds, three_digits};
use weir_model::{Durability, Size};

use super::{Numbered, View, elapsed, figure, name, seconds};
use crate::axes::SyncKind;
use crate::groups::is_without_sync;
use weir_model::bench::{BenchAnswer, BenchRow};

pub(super) fn answer(view: &View) -> Option<BenchAnswer> {
    let kind: SyncKind = view.group.key.sync.parse().ok()?;
    if kind == SyncKind::None {
        return None;
    }
    let key = &view.group.key;
    let plain = view.sibling(|other| is_without_sync(&other.key, key))?;
    let mut compared: Vec<(f64, Numbered, Numbered)> = Vec::new();
    for &row in &view.rows {
        let Some(other) = plain.at(&row.1.method, row.1.record_bytes) else { continue };
        let per_byte = |row: &BenchRow| seconds(row) / row.group.bytes as f64;
        compared.push((per_byte(row.1) / per_byte(other.1), row, other));
    }
    let most = compared.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (slower, row, other) = *most;
    let records = row.1.group.bytes.div_ceil(row.1.record_bytes) as f64;
    let waiting = 1.0 - row.1.cpu_s.map_or(0.0, |cpu| cpu.median) / seconds(row.1);
    let durable = match kind.durability() {
        Durability::Data | Durability::Full => String::new(),
        _ => " It makes nothing durable: neither the device's cache nor the metadata is flushed.".into(),
    };
    let price = view
        .group
        .model
        .filter(|model| model.sync_ns > 0.0)
        .map(|model| format!(" One sync costs {}.", format_seconds(model.sync_ns / 1e9)));
    let text = format!(
        "{} with {} at {}: {} a record, {}× the time without it; {} % of that is waiting, not work.{}{durable}",
        if kind == SyncKind::End { "One fsync at the end" } else { &key.sync },
        name(row.1),
        Size(row.1.record_bytes),
        format_seconds(seconds(row.1) / records),
        three_digits(slower),
        three_digits(waiting.max(0.0) * 100.0),
        price.unwrap_or_default()
    );
    let evidence = vec![
        elapsed(row),
        elapsed(other),
        figure(None, "slower", slower),
        figure(Some(row.0), "waiting_share", waiting),
    ];
    view.answer("What does durability cost?", text, evidence)
}
