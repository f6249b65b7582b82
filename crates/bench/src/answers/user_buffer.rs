//! What did the user-space buffer do?

use weir_model::{Size, estimate};

use super::{View, figure, moving_calls, thousands};
use weir_model::bench::BenchAnswer;

pub(super) fn answer(view: &View) -> Option<BenchAnswer> {
    let methods = ["stdio", "stdio-unlocked", "stdio-char", "stdio-char-unlocked"];
    let (index, row) =
        methods.iter().find_map(|method| view.plain(method).min_by_key(|(_, row)| row.record_bytes))?;
    let calls = moving_calls(row);
    let files = if row.group.workload == "copy" || row.group.workload == "translate" { 2 } else { 1 };
    let requests = files * row.group.bytes / row.record_bytes;
    if calls == 0 || calls >= requests {
        return None;
    }
    let each = (files * row.group.bytes) as f64 / calls as f64;
    let pass = view.group.pass_ns.get(&row.method).filter(|ns| **ns > 0.0).map(|ns| {
        let ci95 = view.group.pass_ns_ci95.get(&row.method).map(|ends| ends.map(|end| end / files as f64));
        format!(" A request without a system call costs {}.", estimate::price(ns / files as f64, ci95))
    });
    let syncs = match row.syncs_per_record() {
        true => "",
        false => " Only these calls sync: a record is durable when the buffer has been written, not before.",
    };
    let text = format!(
        "{}'s buffer turned {} requests of {} into {} system calls of about {}.{syncs}{}",
        row.method,
        thousands(requests),
        Size(row.record_bytes),
        thousands(calls),
        Size(each.round() as u64),
        pass.unwrap_or_default()
    );
    let evidence = vec![
        figure(Some(index), "requests", requests as f64),
        figure(Some(index), "calls", calls as f64),
        figure(Some(index), "bytes_per_call", each),
    ];
    view.answer("What did the user-space buffer do?", text, evidence)
}
