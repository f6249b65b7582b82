//! Where do larger records stop to gain?

use weir_model::Size;
use weir_model::duration::three_digits;

use super::{View, elapsed, figure, name};
use crate::groups::observation;
use weir_model::bench::BenchAnswer;

pub(super) fn answer(view: &View) -> Option<BenchAnswer> {
    let knee = view.group.knee?;
    let method = view.group.model_method.as_deref()?;
    let row =
        view.rows.iter().copied().find(|(_, row)| row.method == method && row.record_bytes == knee.bytes)?;
    let largest =
        view.rows.iter().filter(|(_, row)| row.method == method).map(|(_, row)| row.record_bytes).max()?;
    let interval = match knee.ci95 {
        [low, high] if low == high => String::new(),
        [low, high] => format!(" [{}, {}]", Size(low), Size(high)),
    };
    let share = view.group.model.map(|model| {
        let seen = observation(row.1);
        seen.calls * model.call_ns / 1e9 / model.predict(&seen)
    });
    let calls = share
        .map(|share| {
            format!(" There the calls themselves are {} % of the time.", three_digits(share * 100.0))
        })
        .unwrap_or_default();
    let text = if knee.bytes == largest {
        format!(
            "{} gains up to {}, the largest record measured: try larger ones.{calls}",
            name(row.1),
            Size(knee.bytes)
        )
    } else {
        format!(
            "Gains of {} stop at {}{interval}: larger records win less than 5 %.{calls}",
            name(row.1),
            Size(knee.bytes)
        )
    };
    let mut evidence = vec![figure(None, "knee_bytes", knee.bytes as f64), elapsed(row)];
    evidence.extend(share.map(|share| figure(Some(row.0), "call_share", share)));
    view.answer("Where do gains stop?", text, evidence)
}
