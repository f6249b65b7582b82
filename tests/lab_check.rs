//! `weir lab check` on the sample solutions in tests/solutions: each fails exactly the requirements that its first lines
//! name.
//!
//! WEIR_SOLUTIONS=SUBSTRING judges only the samples whose path contains it.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use common::schema::assert_schema;
use common::{campaign, concurrent, disk_dir, names, run, text};
use serde_json::Value;

/// Returns tests/solutions, which has one folder per exercise.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/solutions")
}

/// A solution and the requirements that it must fail.
struct Sample {
    exercise: String,
    path: PathBuf,
    fails: BTreeSet<String>,
}

/// Returns the requirements in a line `fails at-once, killed: why`, one of the first two; for `fails nothing: why`, none.
fn stated_failures(source: &str) -> Option<BTreeSet<String>> {
    let line = source.lines().take(2).find_map(|line| line.split_once("fails ")).map(|parts| parts.1)?;
    let listed = line.split_once(':')?.0;
    Some(listed.split(", ").filter(|id| *id != "nothing").map(String::from).collect())
}

fn samples() -> Vec<Sample> {
    let wanted = std::env::var("WEIR_SOLUTIONS").unwrap_or_default();
    let mut samples = Vec::new();
    for exercise in names(&folder()).into_iter().filter(|name| !name.contains('.')) {
        let here = folder().join(&exercise);
        for name in names(&here) {
            let path = here.join(&name);
            let source = fs::read_to_string(&path).expect("a text");
            let fails = stated_failures(&source)
                .unwrap_or_else(|| panic!("{}: no line says what it fails", path.display()));
            if path.to_string_lossy().contains(&wanted) {
                samples.push(Sample { exercise: exercise.clone(), path, fails });
            }
        }
    }
    samples.sort_by(|a, b| a.path.cmp(&b.path));
    samples
}

/// Returns the verdicts of a sample of which a quick campaign needs each at least once: a failed requirement of an
/// exercise, or none.
fn properties(sample: &Sample) -> Vec<String> {
    let verdict = |verdict: &str| format!("{} {verdict}", sample.exercise);
    match sample.fails.is_empty() {
        true => vec![verdict("right")],
        false => sample.fails.iter().map(|id| verdict(id)).collect(),
    }
}

/// Judges a sample. Returns a message if the verdict is not the stated one.
fn judge(sample: &Sample) -> Option<String> {
    let dir = disk_dir();
    let path = sample.path.to_str().expect("a path in UTF-8");
    let output = run(dir.path(), &["lab", "check", path, "--as", &sample.exercise, "--json", "-"]);
    let message = || format!("{path}: {}\n{}", output.status, text(&output.stderr));
    let Ok(report) = serde_json::from_slice::<Value>(&output.stdout) else { return Some(message()) };
    let requirements = report["requirements"].as_array().expect("requirements");
    let failed: Vec<_> = requirements.iter().filter(|one| one["met"] == "no").collect();
    let ids: BTreeSet<String> =
        failed.iter().map(|one| one["id"].as_str().unwrap_or_default().to_string()).collect();
    let status = i32::from(!sample.fails.is_empty());
    if ids == sample.fails
        && output.status.code() == Some(status)
        && report["well"] == sample.fails.is_empty()
    {
        return None;
    }
    let observed: Vec<_> = failed.iter().map(|one| format!("\n    {}: {}", one["id"], one["seen"])).collect();
    Some(format!(
        "{path}: must fail {:?}, fails {ids:?}, {}{}",
        sample.fails,
        output.status,
        observed.concat()
    ))
}

#[test]
fn every_sample_fails_the_stated_requirements() {
    let mut samples = samples();
    if std::env::var_os("WEIR_SOLUTIONS").is_none() {
        // Samples that fail much come first, so that few samples cover all requirements.
        samples.sort_by_key(|sample| std::cmp::Reverse(sample.fails.len()));
        campaign::choose("lab check", &mut samples, properties);
    }
    let wrong: Vec<String> = concurrent::for_each(2, &samples, judge).into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} of {} samples:\n{}", wrong.len(), samples.len(), wrong.join("\n"));
}

#[test]
fn each_exercise_has_right_and_wrong_samples() {
    let samples = samples();
    let exercises: BTreeSet<_> = samples.iter().map(|sample| &sample.exercise).collect();
    for exercise in exercises {
        let of = || samples.iter().filter(|sample| sample.exercise == *exercise);
        assert!(of().count() >= 4 && of().any(|one| one.fails.is_empty()), "{exercise}");
        assert!(of().filter(|one| !one.fails.is_empty()).count() >= 3, "{exercise}");
    }
}

#[test]
fn wrong_usage_has_another_status_than_a_wrong_solution() {
    let dir = disk_dir();
    fs::write(dir.path().join("mine.c"), "int main(void) { return 0; }\n").unwrap();
    fs::write(dir.path().join("copy.txt"), "no program\n").unwrap();
    for (arguments, word) in [
        (&["lab", "check"][..], "required"),
        (&["lab", "check", "mine.c"], "--as"),
        (&["lab", "check", "mine.c", "--as", "sort"], "log_message"),
        (&["lab", "check", "copy.c"], "open"),
        (&["lab", "check", "copy.txt"], "chmod +x"),
    ] {
        let output = run(dir.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(word), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn the_list_describes_every_exercise() {
    let dir = disk_dir();
    let all = text(&run(dir.path(), &["lab", "check", "--list"]).stdout);
    for exercise in [
        "copy FROM TO",
        "dots [COUNT",
        "log_message [-l]",
        "sensor_csv [-n",
        "tail [-n",
        "tr A B",
        "write_bytes FILE",
    ] {
        assert!(all.contains(exercise), "{exercise}: {all}");
    }
    let one = text(&run(dir.path(), &["lab", "check", "--list", "--as", "tail"]).stdout);
    assert!(one.contains("from-the-end") && !one.contains("copy FROM TO"), "{one}");
}

#[test]
fn the_screen_lists_requirements_and_names_an_experiment() {
    let dir = disk_dir();
    let path = folder().join("tr/one-byte.c");
    let output = run(dir.path(), &["lab", "check", path.to_str().unwrap(), "--as", "tr"]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    for part in ["✗ calls", "✓ empty", "weir lab one-byte-writes", "cc -O1 -Wall", "8 of 9 requirements"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(names(dir.path()).is_empty(), "files are left behind: {:?}", names(dir.path()));
}

#[test]
fn the_document_obeys_its_schema() {
    let dir = disk_dir();
    for name in ["copy/does-not-compile.c", "tr/right-stdio.c"] {
        let path = folder().join(name);
        let exercise = name.split('/').next().unwrap();
        let output =
            run(dir.path(), &["lab", "check", path.to_str().unwrap(), "--as", exercise, "--json", "-"]);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_schema(&document, "weir-lab-check-1");
    }
}
