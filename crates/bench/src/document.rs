//! The result of a run: rows, groups, answers and warnings.

use crate::answers::answers;
use crate::directory::BenchDirectory;
use crate::groups::group;
use crate::machine::machine;
use crate::published::MeasurableTable;
use crate::rows::{noise, row};
use crate::run::Measurement;
use crate::settings::settings;
use weir_model::bench::{BenchDocument, BenchRow, GroupKey, SCHEMA};

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
        published: published.iter().map(|table| table.compare(&rows)).collect(),
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
    let disturbed_and_kept =
        |round: &&weir_model::bench::Round| !round.repeated && !round.disturbed.is_empty();
    let disturbed: Vec<_> = document.rounds.iter().filter(disturbed_and_kept).collect();
    if let Some(first) = disturbed.first() {
        warnings.push(format!(
            "{} of {} rounds were disturbed and still count ({}): the machine was not idle",
            disturbed.len(),
            document.rounds.len(),
            first.disturbed.join(", ")
        ));
    }
    if document.noise.wall.is_none() && document.rows.iter().any(|row| row.elapsed_s.is_some()) {
        warnings.push("too few rounds to estimate the noise: use a longer --budget".into());
    }
    let fewest = document.rows.iter().filter_map(|row| Some(row.elapsed_s?.n)).min();
    if let Some(fewest @ 0..5) = fewest {
        warnings.push(format!(
            "some rows have only {fewest} samples, so their intervals are unreliable: use a longer --budget"
        ));
    }
    if measurement.rounds.iter().any(|round| round.steal > 0.02) {
        warnings.push("the hypervisor took CPU time from this machine in some rounds (steal)".into());
    }
    warnings
}
