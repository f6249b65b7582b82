//! `weir lab`: every experiment agrees with its statement, leaves nothing behind, and stands in docs/experiments.md.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::thread;

use common::schema::assert_schema;
use common::{campaign, disk_dir, is_root, names, programs, run, skip, text, wait_for, weir};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the rows of the table in docs/experiments.md by name: what happens, and whether it agrees.
fn documented_experiments() -> BTreeMap<String, (String, String)> {
    let page = fs::read_to_string(root().join("docs/experiments.md")).expect("docs/experiments.md");
    let (_, table) = page.split_once("<!-- generated: experiments -->").expect("the table's first marker");
    let (table, _) = table.split_once("<!-- end -->").expect("the table's last marker");
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let cells = |row: &str| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_string()).collect();
    let of = |row: &str| {
        let cells: Vec<String> = cells(row);
        (cells[0].trim_matches('`').to_string(), (cells[1].clone(), cells[2].clone()))
    };
    rows.map(of).collect()
}

/// Runs an experiment, or all, with --quick and returns the document. Asserts that no file is left and that the exit
/// status is right.
fn run_quick(name: &str) -> Value {
    let dir = disk_dir();
    let made = dir.path().join("tmp");
    fs::create_dir(&made).unwrap();
    let mut command = weir(dir.path(), &["lab", name, "--quick", "--quiet", "--json", "lab.json"]);
    command.env("TMPDIR", &made).env("GOCACHE", programs::go_cache());
    let output = command.output().unwrap();
    let document: Value = serde_json::from_slice(&fs::read(dir.path().join("lab.json")).unwrap()).unwrap();
    assert_eq!(names(&made), [""; 0], "left behind");
    let wrong = document["experiments"].as_array().unwrap().iter().filter(|row| row["agrees"] == false);
    let wrong: Vec<_> = wrong.map(|row| format!("{}: {}", row["name"], row["reason"])).collect();
    assert_eq!(output.status.code(), Some(i32::from(!wrong.is_empty())), "{}", text(&output.stderr));
    document
}

/// The name of an experiment and its lab.toml.
type NamedExperiment = (String, toml::Table);

/// Returns all experiments of the folder lab, or in a quick campaign those that together have every theme, finding,
/// published table and special field.
fn chosen_experiments() -> Vec<NamedExperiment> {
    let parse = |name: String| {
        let text = fs::read_to_string(root().join("lab").join(&name).join("lab.toml")).ok()?;
        Some((name, text.parse().expect("lab.toml")))
    };
    let mut experiments: Vec<NamedExperiment> =
        names(&root().join("lab")).into_iter().filter_map(parse).collect();
    experiments.sort_by(|a, b| a.0.cmp(&b.0));
    campaign::choose("lab", &mut experiments, properties);
    experiments
}

fn properties((_, experiment): &NamedExperiment) -> Vec<String> {
    const OF_ALL: [&str; 5] = ["about", "why", "fix", "expect", "outcome"];
    let of_field = |(field, value): (&String, &toml::Value)| match (field.as_str(), value) {
        (field, _) if OF_ALL.contains(&field) => vec![],
        ("theme" | "finding", value) => vec![value.to_string()],
        ("published", toml::Value::Array(tables)) => tables.iter().map(ToString::to_string).collect(),
        (field, _) => vec![field.to_string()],
    };
    experiment.iter().flat_map(of_field).collect()
}

/// Runs the chosen experiments four at a time, then those that must run alone, and returns one document.
fn run_chosen(experiments: Vec<NamedExperiment>) -> Value {
    let (alone, concurrent): (Vec<_>, Vec<_>) =
        experiments.into_iter().partition(|(_, experiment)| experiment.contains_key("alone"));
    let (queue, documents) = (Mutex::new(concurrent), Mutex::new(Vec::new()));
    let run_next = || {
        let Some((name, _)) = queue.lock().unwrap().pop() else { return false };
        let document = run_quick(&name);
        documents.lock().unwrap().push(document);
        true
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| while run_next() {});
        }
    });
    let mut documents = documents.into_inner().unwrap();
    documents.extend(alone.iter().map(|(name, _)| run_quick(name)));
    let rows = documents.iter().flat_map(|one| one["experiments"].as_array().unwrap().clone()).collect();
    let mut document = documents.swap_remove(0);
    document["experiments"] = Value::Array(rows);
    document
}

/// Runs an experiment again, alone: one that depends on time can differ on a loaded machine.
fn agrees_alone(name: &str) -> bool {
    let dir = disk_dir();
    let output = run(dir.path(), &["lab", name, "--quick"]);
    println!("{}", text(&output.stdout));
    output.status.success()
}

#[test]
fn every_experiment_agrees_or_names_what_the_machine_lacks() {
    let mut document = if campaign::is_quick() { run_chosen(chosen_experiments()) } else { run_quick("all") };
    assert_schema(&document, "weir-lab-1");
    for row in document["experiments"].as_array_mut().unwrap() {
        let name = row["name"].as_str().unwrap().to_string();
        if row["agrees"] == false && agrees_alone(&name) {
            row["agrees"] = true.into();
        }
        assert_ne!(row["agrees"], false, "{name}: {}", row["reason"]);
        if row["agrees"].is_null() {
            skip(&format!("lab {name}"), row["reason"].as_str().expect("a reason"));
        }
    }
    assert_documentation_matches(&document);
}

/// `scripts/experiments` writes the table in docs/experiments.md from the experiments and from this run.
fn assert_documentation_matches(document: &Value) {
    let mut documented = documented_experiments();
    for row in document["experiments"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        let (about, works) =
            documented.remove(name).unwrap_or_else(|| panic!("{name} is not in docs/experiments.md"));
        assert_eq!(
            about,
            row["about"].as_str().unwrap().replace('|', "\\|"),
            "{name}: run scripts/experiments"
        );
        assert!(row["agrees"].is_null() || works.starts_with("yes"), "{name}: run scripts/experiments");
    }
    let is_left_out = |name: &String| campaign::is_quick() && root().join("lab").join(name).is_dir();
    documented.retain(|name, _| !is_left_out(name));
    assert!(documented.is_empty(), "not among the experiments: {documented:?}");
}

#[test]
fn the_list_a_page_and_the_programs_are_shown() {
    let dir = disk_dir();
    let list = text(&run(dir.path(), &["lab"]).stdout);
    assert!(list.contains("B · where the bytes are") && list.contains("doubled-at-fork"), "{list}");
    let page = text(&run(dir.path(), &["lab", "lost-at-kill"]).stdout);
    for part in ["You would expect", "100 lines", "0 lines ✗", "100 lines ✓", "Why:", "Fix:", "cc -O1"] {
        assert!(page.contains(part), "{part}:\n{page}");
    }
    let source = text(&run(dir.path(), &["lab", "lost-at-kill", "--source"]).stdout);
    assert!(source.starts_with("/* cc -O1 -o broken broken.c */") && !source.contains("fflush"), "{source}");
    assert!(text(&run(dir.path(), &["lab", "lost-at-kill", "--fixed"]).stdout).contains("fflush(stdout)"));
    let unknown = run(dir.path(), &["lab", "lost-at-kil"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("did you mean lost-at-kill?"), "{}", text(&unknown.stderr));
}

#[test]
fn an_interrupted_run_leaves_no_files_and_no_mounts() {
    if !is_root() {
        return skip("an_interrupted_run_leaves_no_files_and_no_mounts", "power-cut needs root");
    }
    let dir = disk_dir();
    let mut command = weir(dir.path(), &["lab", "power-cut"]);
    let command = common::with_signals(&mut command);
    let mut child = command.env("TMPDIR", dir.path()).stdout(Stdio::null()).spawn().unwrap();
    wait_for("the first mount", || {
        let made = names(dir.path()).into_iter().map(|name| dir.path().join(name));
        made.into_iter().any(|made| made.join("run-broken/mounted").exists())
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    assert_eq!(names(dir.path()), [""; 0]);
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains("weir-lab-"), "{mounts}");
}
