//! Which method wins at the smallest record, where calls cost most?

use weir_model::{Size, estimate};

use super::{MAX_FIT_ERROR, Numbered, View, elapsed, figure, joined, moving_calls, name, seconds, thousands};
use weir_model::bench::BenchAnswer;
use weir_model::bench::ratio;

pub(super) fn answer(view: &View) -> Option<BenchAnswer> {
    let Some(record) = smallest_shared(view) else { return alone(view) };
    let mut rows = view.comparable();
    rows.retain(|(_, row)| row.record_bytes == record);
    rows.sort_by(|a, b| seconds(a.1).total_cmp(&seconds(b.1)));
    let (first, last) = (*rows.first()?, *rows.last()?);
    let question = "Which method wins at the smallest record, and by how much?";
    // The comparison is with plain system calls, whose number a buffer reduces; if these win, with the slowest row.
    let other = rows
        .iter()
        .copied()
        .find(|(_, row)| row.method == "syscall")
        .filter(|row| row.0 != first.0)
        .unwrap_or(last);
    let ahead = ratio(other.1, first.1)?;
    let evidence = vec![elapsed(first), elapsed(other), figure(None, "ratio", ahead.value)];
    let at = Size(record);
    if ahead.is_tie(view.noise) {
        let text = format!(
            "At {at} {} and {} tie: {} is within the noise.",
            name(first.1),
            name(other.1),
            estimate::ratio(&ahead)
        );
        return view.answer(question, text, evidence);
    }
    let (few, many) = (moving_calls(first.1), moving_calls(other.1));
    let because = if few < many {
        format!(", for {} system calls, not {}", thousands(many), thousands(few))
    } else {
        String::new()
    };
    let is_tie = |row: &&Numbered| ratio(row.1, first.1).is_some_and(|ratio| ratio.is_tie(view.noise));
    let ties: Vec<String> = rows[1..].iter().filter(is_tie).map(|row| name(row.1)).collect();
    let wins = match ties.as_slice() {
        [] => format!("{} wins", name(first.1)),
        ties => format!(
            "{} wins ({} {} with it)",
            name(first.1),
            joined(ties),
            if ties.len() == 1 { "ties" } else { "tie" }
        ),
    };
    let text =
        format!("At {at} {wins}: {} takes {} its time{because}.", name(other.1), estimate::ratio(&ahead));
    view.answer(question, text, evidence)
}

/// Returns the smallest record that more than one row has. If some rows sync less often than the others, returns it only if no
/// other record of the group is smaller, because the answer is about the smallest record.
fn smallest_shared(view: &View) -> Option<u64> {
    let rows = view.comparable();
    let of = |record: u64| rows.iter().filter(|(_, row)| row.record_bytes == record).count();
    let shared = rows.iter().map(|(_, row)| row.record_bytes).filter(|&record| of(record) > 1).min()?;
    let smallest = view.rows.iter().map(|(_, row)| row.record_bytes).min()?;
    (shared == smallest || rows.len() == view.rows.len()).then_some(shared)
}

/// Compares the smallest record with the best one of the same method, for groups without a shared record.
fn alone(view: &View) -> Option<BenchAnswer> {
    let method = view.group.model_method.as_deref()?;
    let of_method = || view.rows.iter().copied().filter(|(_, row)| row.method == method);
    let smallest = of_method().min_by_key(|(_, row)| row.record_bytes)?;
    let best = of_method().min_by(|a, b| seconds(a.1).total_cmp(&seconds(b.1)))?;
    if best.0 == smallest.0 {
        return None;
    }
    let slower = ratio(smallest.1, best.1)?;
    let calls = view
        .group
        .model
        .filter(|model| model.fit.max_error <= MAX_FIT_ERROR)
        .map(|model| {
            let ci95 = view.group.model_ci95.map(|prices| prices.call_ns);
            format!("; a call costs {}", estimate::price(model.call_ns, ci95))
        })
        .unwrap_or_default();
    let text = format!(
        "{} at {} takes {}, {} the time of {}{calls}.",
        name(smallest.1),
        Size(smallest.1.record_bytes),
        smallest.1.elapsed_s.map_or(String::new(), |elapsed| estimate::median_seconds(&elapsed)),
        estimate::ratio(&slower),
        Size(best.1.record_bytes),
    );
    view.answer("What does the smallest record cost?", text, vec![elapsed(smallest), elapsed(best)])
}
