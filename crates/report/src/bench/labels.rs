//! Labels of groups, knees and costs.

use weir_model::bench::GroupKey;
use weir_model::cost::PriceIntervals;
use weir_model::{CostModel, Knee, Size, estimate};

use crate::number::whole_percent;

/// Returns the parts of a group's title: workload, size, file system, cache, sync policy, advice.
pub(super) fn parts(key: &GroupKey) -> [String; 6] {
    [
        key.workload.clone(),
        Size(key.bytes).to_string(),
        if key.dir == key.fs { key.fs.clone() } else { format!("{} ({})", key.fs, key.dir) },
        format!("{} cache", key.cache),
        sync(key),
        key.advice.as_ref().map_or(String::new(), |advice| format!("advice {advice}")),
    ]
}

/// Returns the title of a group.
pub(super) fn title(key: &GroupKey) -> String {
    join(parts(key).into_iter())
}

/// Returns the parts in which `key` differs from some of `others`, in short form.
pub(super) fn difference(key: &GroupKey, others: &[&GroupKey]) -> String {
    let differs = |at: &usize| others.iter().any(|other| parts(other)[*at] != parts(key)[*at]);
    let one_dir_each =
        others.iter().all(|other| others.iter().all(|o| o.fs != other.fs || o.dir == other.dir));
    let short = |at: usize| match at {
        2 if one_dir_each => key.fs.clone(),
        3 => key.cache.clone(),
        4 => typed(key),
        5 => key.advice.clone().unwrap_or_default(),
        _ => parts(key)[at].clone(),
    };
    let text = join((0..6).filter(differs).map(short));
    if text.is_empty() { title(key) } else { text }
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

/// Returns the sync policy as on the command line.
fn typed(key: &GroupKey) -> String {
    match (key.sync.as_str(), key.sync_every_records, key.sync_every_bytes) {
        ("none", ..) => "no sync".into(),
        (name, Some(records @ 2..), _) => format!("{name}:{records}"),
        (name, None, Some(bytes)) => format!("{name}:{}", Size(bytes)).replace(' ', ""),
        (name, ..) => name.into(),
    }
}

fn sync(key: &GroupKey) -> String {
    let every = match (key.sync_every_records, key.sync_every_bytes) {
        (Some(1), _) => " after each record".into(),
        (Some(records), _) => format!(" every {records} records"),
        (None, Some(bytes)) => format!(" every {}", Size(bytes)),
        (None, None) => String::new(),
    };
    match key.sync.as_str() {
        "none" => "no sync".into(),
        "end" => "one fsync at the end".into(),
        "o_sync" => "O_SYNC".into(),
        "o_dsync" => "O_DSYNC".into(),
        "rwf_dsync" => "RWF_DSYNC".into(),
        "sync_file_range" => format!("sync_file_range{every} (not durable)"),
        other => format!("{other}{every}"),
    }
}

/// Returns a knee with its interval: `16 KiB [8 KiB, 32 KiB]`.
pub(super) fn knee(knee: &Knee) -> String {
    let [low, high] = knee.ci95.map(Size);
    match low == high {
        true => Size(knee.bytes).to_string(),
        false => format!("{} [{low}, {high}]", Size(knee.bytes)),
    }
}

/// Returns a price in a fitting unit, as an interval if it is wide.
pub(super) fn price(ns: f64, ci95: Option<[f64; 2]>) -> String {
    if ns == 0.0 { "0 ns".into() } else { estimate::price(ns, ci95) }
}

/// Returns the cost model as a sentence without its full stop.
pub(super) fn costs(model: &CostModel, ci95: Option<&PriceIntervals>) -> String {
    format!("{}: {}", prices(model, ci95), fit(model))
}

/// Returns how well the prices explain the rows that they were fitted to; errors for other rows can be larger.
fn fit(model: &CostModel) -> String {
    let [most, median] = [model.fit.max_error, model.fit.median_error].map(within_percent);
    let rows = model.fit.rows;
    let by_half = if most == median { String::new() } else { format!(", half of them within {median} %") };
    format!("fits its {rows} rows within {most} %{by_half}")
}

/// Returns a share as a whole percentage of at least 1, for `within`.
pub(super) fn within_percent(share: f64) -> String {
    whole_percent(share.max(0.01))
}

/// Returns the prices in a clause.
pub(super) fn prices(model: &CostModel, ci95: Option<&PriceIntervals>) -> String {
    let ends = |of: fn(&PriceIntervals) -> [f64; 2]| ci95.map(of);
    let one = |thing: &str, ns: f64, ends| (ns > 0.0).then(|| format!(", one {thing} {}", price(ns, ends)));
    let call = price(model.call_ns, ends(|prices| prices.call_ns));
    let byte = price(model.byte_ns, ends(|prices| prices.byte_ns));
    let more = [
        one("block of the page cache", model.block_ns, ends(|prices| prices.block_ns)),
        one("sync", model.sync_ns, ends(|prices| prices.sync_ns)),
    ];
    let more: String = more.into_iter().flatten().collect();
    format!("one call costs {call}, one byte {byte}{more}")
}
