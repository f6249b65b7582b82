//! Notes under a table: rows that could not be measured, and the meaning of the marks.

use weir_model::bench::BenchRow;
use weir_model::{Size, knee::TOLERANCE};

use super::section::{Section, labels};
use crate::block::Block;
use crate::number::{bytes_like, whole_percent};

/// Groups rows with equal texts, in the order of the first row of each group.
fn together<'a>(
    rows: impl Iterator<Item = &'a BenchRow>,
    what: fn(&BenchRow) -> Option<&String>,
) -> Vec<(&'a String, Vec<&'a BenchRow>)> {
    let mut shared: Vec<(&String, Vec<&BenchRow>)> = Vec::new();
    for row in rows {
        let Some(text) = what(row) else { continue };
        match shared.iter_mut().find(|(known, _)| *known == text) {
            Some((_, rows)) => rows.push(row),
            None => shared.push((text, vec![row])),
        }
    }
    shared
}

/// Returns the rows that this machine cannot measure, grouped by reason.
pub(super) fn missing(section: &Section) -> Vec<Block> {
    let cannot = together(section.rows.iter().copied(), |row| row.cannot.as_ref());
    cannot.into_iter().map(|(why, rows)| Block::Missing { what: labels(&rows), why: why.clone() }).collect()
}

/// Returns the meaning of the marks, the remarks and the note about dirty pages.
pub(super) fn asides(section: &Section) -> Vec<Block> {
    let marks = marks(section);
    let mut blocks: Vec<Block> = (!marks.is_empty()).then_some(Block::Facts(marks)).into_iter().collect();
    let remarks = together(section.possible(), |row| row.remark.as_ref());
    let remarks = remarks.into_iter().map(|(remark, rows)| format!("* {}: {remark}", labels(&rows)));
    let notes = knee(section).into_iter().chain(remarks).chain(dirty(section));
    blocks.extend(notes.map(Block::Aside));
    blocks
}

fn marks(section: &Section) -> Vec<String> {
    let any = |is: fn(&BenchRow) -> bool| section.measured().any(|(row, _)| is(row));
    let tie = |row: &BenchRow| row.ties_with_best && row.vs_best.is_some_and(|vs| vs.value != 1.0);
    let marks = [
        (any(|row| row.extrapolated), "~ measured in part and scaled up; --exact measures all of it"),
        (any(tie), "= tie: within the noise"),
        (any(|_| true), "± half the 95 % interval"),
    ];
    marks.iter().filter(|(shown, _)| *shown).map(|(_, mark)| mark.to_string()).collect()
}

fn knee(section: &Section) -> Option<String> {
    let (knee, method) = (section.knee()?, section.group.model_method.as_ref()?);
    let interval = match knee.ci95 {
        [low, high] if low == high => String::new(),
        [low, high] => format!("; 95 % interval: {} to {}", Size(low), Size(high)),
    };
    Some(format!(
        "knee (the marked row): the smallest record of {method} within {} % of its best{interval}",
        whole_percent(TOLERANCE)
    ))
}

fn dirty(section: &Section) -> Option<String> {
    let most = section.rows.iter().filter_map(|row| row.dirty_bytes).max().filter(|&bytes| bytes > 0)?;
    let (key, whole) = (section.key(), section.key().bytes);
    let why = match key.sync.as_str() {
        "none" => "no sync was requested".into(),
        sync => format!("the sync policy was {sync}"),
    };
    let most = if most >= whole { "All".into() } else { bytes_like(most, whole) };
    Some(format!("{most} of the written {} were only in memory at the end of a sample: {why}", Size(whole)))
}
