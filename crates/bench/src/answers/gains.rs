//! At which record size do gains stop?

use weir_model::bench::{BenchAnswer, BenchRow};
use weir_model::{Knee, Size, estimate};

use super::{MAX_FIT_ERROR, Numbered, View, elapsed, figure, name, seconds};
use crate::groups::observation;
use crate::rows::ratio;

pub(super) fn answer(view: &View) -> Option<BenchAnswer> {
    const QUESTION: &str = "Where do gains stop?";
    let method = view.group.model_method.as_deref()?;
    let curve = curve(view, method)?;
    let largest = curve.last()?.1.record_bytes;
    let Some(knee) = view.group.knee?.within(largest) else { return go_on(view, QUESTION, &curve) };
    let row = *curve.iter().find(|(_, row)| row.record_bytes == knee.bytes)?;
    let share = call_share(view, row.1);
    let calls = share
        .map(|share| format!(" There the calls themselves are about {:.0} % of the time.", share * 100.0));
    let text = format!("{}{}", stop(&name(row.1), knee, largest), calls.unwrap_or_default());
    let mut evidence = vec![figure(None, "knee_bytes", knee.bytes as f64), elapsed(row)];
    evidence.extend(share.map(|share| figure(Some(row.0), "call_share", share)));
    view.answer(QUESTION, text, evidence)
}

/// Returns the rows of the knee's curve by record size; `None` for fewer than two.
fn curve<'a>(view: &View<'a>, method: &str) -> Option<Vec<Numbered<'a>>> {
    let first = view.rows.iter().find(|(_, row)| row.method == method)?.1;
    let variant =
        |row: &BenchRow| (row.buffer_bytes, row.mode.clone()) == (first.buffer_bytes, first.mode.clone());
    let own = view.rows.iter().copied().filter(|(_, row)| row.method == method && variant(row));
    let mut curve: Vec<Numbered> = own.collect();
    curve.sort_by_key(|(_, row)| row.record_bytes);
    (curve.len() >= 2).then_some(curve)
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

/// Answers for a curve that falls to its end: it has no knee.
fn go_on(view: &View, question: &str, curve: &[Numbered]) -> Option<BenchAnswer> {
    let [.., before, last] = curve else { return None };
    let ahead = ratio(before.1, last.1)?;
    let size = Size(last.1.record_bytes);
    let (best, largest) = (least(curve), *last);
    if best.0 != largest.0 {
        return None;
    }
    let compared = match ahead.is_tie(view.noise) {
        true => {
            format!("its time and that of {} differ by no more than the noise", Size(before.1.record_bytes))
        }
        false => {
            format!("{} takes {} its time", Size(before.1.record_bytes), estimate::ratio(&ahead))
        }
    };
    let text = format!(
        "Not within the records measured: {} is fastest with {size}, the largest, and {compared}. Larger ones may gain \
         more.",
        name(last.1)
    );
    view.answer(question, text, vec![elapsed(*before), elapsed(*last), figure(None, "ratio", ahead.value)])
}

fn least<'a>(curve: &[Numbered<'a>]) -> Numbered<'a> {
    let first = curve[0];
    curve
        .iter()
        .copied()
        .fold(first, |least, row| if seconds(row.1) < seconds(least.1) { row } else { least })
}

/// Returns the share of a row's time that its calls take by the cost model; `None` if the model fits badly.
fn call_share(view: &View, row: &BenchRow) -> Option<f64> {
    let model = view.group.model.filter(|model| model.fit.max_error <= MAX_FIT_ERROR)?;
    let seen = observation(row);
    Some(seen.calls * model.call_ns / 1e9 / model.predict(&seen))
}
