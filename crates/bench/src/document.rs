//! The result of a run: rows, groups, answers and warnings.

use crate::answers::answers;
use crate::directory::BenchDirectory;
use crate::groups::group;
use crate::machine::machine;
use crate::published::MeasurableTable;
use crate::rows::{noise, row};
use crate::run::Measurement;
use crate::settings::settings;
use weir_model::bench::{BenchDocument, BenchRow, GroupKey, Round, SCHEMA};
use weir_model::number::counted;

/// When and how the run was started.
pub struct Started {
    /// The arguments of the process, program name first.
    pub command: Vec<String>,
    /// Wall-clock time of the start.
    pub at: std::time::SystemTime,
}

/// Makes the result document of `measurement`.
pub fn document(
    measurement: &Measurement,
    directories: &[BenchDirectory],
    published: &[&MeasurableTable],
    started: Started,
) -> BenchDocument {
    let noise = noise(&measurement.tracks, &measurement.rounds);
    let mut rows: Vec<BenchRow> = measurement
        .tracks
        .iter()
        .map(|track| row(track, &directories[track.cell.directory], &measurement.rounds))
        .collect();
    let options = |key: &GroupKey| {
        let directory =
            directories.iter().find(|directory| directory.dir == key.dir && directory.fs == key.fs);
        directory.map(|directory| directory.mount_options.clone()).unwrap_or_default()
    };
    let groups = group(&mut rows, &noise, options);
    let floor = noise.floor();
    let mut document = BenchDocument {
        schema: SCHEMA.into(),
        command: started.command,
        seed: Some(measurement.seed),
        started: humantime::format_rfc3339_seconds(started.at).to_string(),
        took_s: started.at.elapsed().map_or(0.0, |took| took.as_secs_f64()),
        complete: measurement.complete,
        machine: machine(),
        settings: settings(directories.iter().flat_map(|directory| directory.device_paths())),
        noise,
        model: groups.first().and_then(|group| group.model),
        knee_bytes: groups.first().and_then(|group| group.knee).map(|knee| knee.bytes),
        published: published.iter().map(|table| table.compare(&rows, floor)).collect(),
        groups,
        rows,
        answers: Vec::new(),
        rounds: measurement.rounds.clone(),
        warnings: Vec::new(),
    };
    document.answers = answers(&document);
    document.warnings = warnings(&document, measurement);
    document
}

/// Returns the reasons to doubt the figures.
fn warnings(document: &BenchDocument, measurement: &Measurement) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(disturbed(&document.rounds));
    if document.noise.wall.is_none() && document.rows.iter().any(|row| row.elapsed_s.is_some()) {
        warnings.push("too few rounds to estimate the noise: use a longer --budget".into());
    }
    let fewest = document.rows.iter().filter_map(|row| Some(row.elapsed_s?.n)).min();
    if let Some(fewest @ 0..5) = fewest {
        warnings.push(format!(
            "some rows have only {}, so their intervals are unreliable: use a longer --budget",
            counted(fewest as u64, "sample")
        ));
    }
    if measurement.rounds.iter().any(|round| round.steal > 0.02) {
        warnings.push("the hypervisor took CPU time from this machine in some rounds (steal)".into());
    }
    warnings
}

/// Returns a sentence about the rounds that were disturbed and count; `None` without any.
fn disturbed(rounds: &[Round]) -> Option<String> {
    let counting = || rounds.iter().filter(|round| !round.repeated);
    let disturbed: Vec<&Round> = counting().filter(|round| !round.disturbed.is_empty()).collect();
    let causes = disturbed.first()?.disturbed.join(", ");
    let (many, all) = (disturbed.len(), counting().count());
    let rounds = match (many, all) {
        (1, 1) => "The only round that counts was disturbed".into(),
        (1, _) => format!("1 of the {all} rounds that count was disturbed"),
        _ => format!("{many} of the {all} rounds that count were disturbed"),
    };
    Some(format!("{rounds} ({causes}): the machine was not idle"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rounds_that_count_are_called_disturbed() {
        let calm = Round::default();
        let kept = Round { disturbed: vec!["steal 7 %".into()], ..Round::default() };
        let repeated = Round { repeated: true, ..kept.clone() };
        assert_eq!(disturbed(&[calm.clone(), repeated.clone()]), None);
        let text = |rounds: &[Round]| disturbed(rounds).unwrap();
        let of_two = text(&[calm.clone(), kept.clone(), repeated]);
        assert_eq!(
            of_two,
            "1 of the 2 rounds that count was disturbed (steal 7 %): the machine was not idle"
        );
        assert!(text(&[calm, kept.clone(), kept.clone()]).starts_with("2 of the 3 rounds that count were"));
        assert!(text(&[kept]).starts_with("The only round that counts was disturbed"));
    }
}
