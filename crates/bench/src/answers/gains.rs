//! At which record size do gains stop?

use weir_model::bench::{BenchAnswer, BenchRow, Gains};
use weir_model::{Knee, Size, estimate};

use super::{MAX_FIT_ERROR, View, elapsed, figure, name};
use crate::groups::observation;

const QUESTION: &str = "Where do gains stop?";

pub(super) fn answer(view: &View) -> Option<BenchAnswer> {
    if view.group.key.has_lines() {
        return None;
    }
    let (curve, gains) = view.gains()?;
    let Gains::Stop(knee) = gains else { return without_knee(view, &curve, gains) };
    let row = *curve.iter().find(|row| row.record_bytes == knee.bytes)?;
    let share = call_share(view, row);
    let calls =
        share.as_ref().map(|(_, text)| format!(" There the calls themselves are {text} of the time."));
    let text = format!("{}{}", stop(&name(row), knee, curve.last()?.record_bytes), calls.unwrap_or_default());
    let numbered = view.numbered(row)?;
    let mut evidence = vec![figure(None, "knee_bytes", knee.bytes as f64), elapsed(numbered)];
    evidence.extend(share.map(|(share, _)| figure(Some(numbered.0), "call_share", share)));
    view.answer(QUESTION, text, evidence)
}

/// Returns where the gains of a method stop, by the knee's interval.
fn stop(method: &str, knee: Knee, largest: u64) -> String {
    let [low, high] = knee.ci95;
    match () {
        () if high >= largest => format!(
            "Gains of {method} stop at {} or more [{}, {}]: the interval reaches the largest record measured, so larger \
             ones may gain more.",
            Size(knee.bytes),
            Size(low),
            Size(high)
        ),
        () if low == high => {
            format!("Gains of {method} stop at {}: larger records win less than 5 %.", Size(knee.bytes))
        }
        () => format!(
            "Gains of {method} stop at {} [{}, {}]: records above {} win less than 5 %.",
            Size(knee.bytes),
            Size(low),
            Size(high),
            Size(high)
        ),
    }
}

/// Answers for a curve whose largest record is the fastest: it has no knee.
fn without_knee(view: &View, curve: &[&BenchRow], gains: Gains) -> Option<BenchAnswer> {
    let last = *curve.last()?;
    let method = name(last);
    let (other, compared, text) = match gains {
        Gains::Stop(_) => return None,
        Gains::Level { from, to, ratio } => {
            let [from_text, to] = [from, to].map(Size);
            let text = format!(
                "{method}: no gain from {from_text} to {to}, the largest record measured, exceeds the noise: {from_text} \
                 takes {} the time of {to}.",
                estimate::ratio(&ratio)
            );
            (from, ratio, text)
        }
        Gains::GoOn { before, to, ratio } => {
            let text = format!(
                "Not within the records measured: {method} is fastest with {}, the largest, and {} takes {} its time. \
                 Larger ones may gain more.",
                Size(to),
                Size(before),
                estimate::ratio(&ratio)
            );
            (before, ratio, text)
        }
    };
    let other = *curve.iter().find(|row| row.record_bytes == other)?;
    let rows = [view.numbered(other)?, view.numbered(last)?].map(elapsed);
    view.answer(QUESTION, text, rows.into_iter().chain([figure(None, "ratio", compared.value)]).collect())
}

/// Returns the share of a row's time that its calls take by the cost model, as a number and as text; `None` if the model fits badly.
fn call_share(view: &View, row: &BenchRow) -> Option<(f64, String)> {
    let model = view.group.model.filter(|model| model.fit.max_error <= MAX_FIT_ERROR)?;
    let seen = observation(row);
    let whole_ns = model.predict(&seen) * 1e9;
    let share = |call_ns: f64| (seen.calls * call_ns / whole_ns).min(1.0);
    let percent = |share: f64| format!("{:.0}", share * 100.0);
    let [low, high] =
        view.group.model_ci95.map_or([share(model.call_ns); 2], |prices| prices.call_ns.map(share));
    let text = match percent(low) == percent(high) {
        true => format!("about {} %", percent(low)),
        false => format!("{} to {} %", percent(low), percent(high)),
    };
    Some((share(model.call_ns), text))
}
