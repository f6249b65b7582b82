//! The table in docs/runtimes.md: written from a measurement, and compared with the expected abilities.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::abilities::ABILITIES;
use super::roots::RELEASES;
use super::table::RUNTIMES;

const BEGIN: &str = "<!-- measured: runtimes -->\n";
const END: &str = "<!-- end -->";

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/runtimes.md")
}

/// Returns the lines of the table with the rows of a document.
fn lines(document: &Value) -> Vec<String> {
    let mut lines = vec![
        format!("| release | runtime | version | {} | measured | why not |", ABILITIES.join(" | ")),
        format!("|{}", "---|".repeat(ABILITIES.len() + 5)),
    ];
    for row in document["rows"].as_array().into_iter().flatten() {
        let marks = ABILITIES.map(|name| if row[name] == true { "yes" } else { "no" });
        let [release, runtime, version, measured, why] =
            ["release", "runtime", "version", "measured", "why"].map(|name| text(row, name));
        let marks = marks.join(" | ");
        lines.push(format!("| {release} | {runtime} | {version} | {marks} | {measured} | {why} |"));
    }
    lines
}

/// Returns the text in a field; an empty one if there is none.
fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_default()
}

/// Writes the rows of a measurement into the page.
pub fn generate(document: &Value) {
    let mut lines = lines(document);
    lines.push(String::new());
    for skipped in document["skipped"].as_array().into_iter().flatten() {
        lines.push(format!("* {}: {}.", text(skipped, "what"), text(skipped, "why")));
    }
    let page_text = fs::read_to_string(page()).expect("docs/runtimes.md");
    let (before, rest) = page_text.split_once(BEGIN).expect("the beginning of the table");
    let (_, after) = rest.split_once(END).expect("the end of the table");
    fs::write(page(), format!("{before}{BEGIN}{}\n{END}{after}", lines.join("\n")))
        .expect("docs/runtimes.md");
}

/// Returns the cells of each row of the page's table.
fn cells(page: &str) -> Vec<Vec<&str>> {
    let table = page.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)).expect("a table").0;
    let rows = table.lines().skip(2).filter(|line| line.starts_with('|'));
    rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Returns the rows of the page as a document from which they could be written.
pub fn rows() -> Value {
    let page = fs::read_to_string(page()).expect("docs/runtimes.md");
    let row = |cells: &Vec<&str>| {
        let [release, runtime, version, marks @ .., measured, why] = &cells[..] else { panic!("{cells:?}") };
        let mut row = json!({ "release": release, "runtime": runtime, "version": version, "measured": measured, "why": why });
        for (name, mark) in ABILITIES.iter().zip(marks) {
            row[*name] = json!(*mark == "yes");
        }
        row
    };
    json!({ "rows": cells(&page).iter().map(row).collect::<Vec<_>>() })
}

/// A run of one release in a new clone must leave the other rows in the page.
#[test]
fn the_rows_of_the_page_are_those_it_was_written_from() {
    let text = fs::read_to_string(page()).expect("docs/runtimes.md");
    let written = lines(&rows());
    assert!(written.len() > 2 + RELEASES.len() && text.contains(&written.join("\n")), "{written:#?}");
}

/// The page must not claim what the test of the abilities does not demand, nor hide a runtime.
#[test]
fn the_page_has_the_expected_abilities() {
    let page = fs::read_to_string(page()).expect("docs/runtimes.md");
    let rows = cells(&page);
    for row in &rows {
        let [release, name, version, marks @ .., measured, why] = &row[..] else { panic!("{row:?}") };
        assert!(RELEASES.iter().any(|one| one.suite == *release), "{row:?}");
        let runtime = RUNTIMES.iter().find(|one| one.name == *name).unwrap_or_else(|| panic!("{row:?}"));
        let expected = runtime.expected(version);
        let has: Vec<bool> = marks.iter().map(|mark| *mark == "yes").collect();
        assert_eq!((has, *why), (expected.abilities.to_vec(), expected.why), "{row:?}");
        assert_eq!((measured.len(), measured.split('-').count()), (10, 3), "a date: {row:?}");
    }
    for release in RELEASES {
        assert!(rows.iter().any(|row| row[0] == release.suite), "{} has no row", release.suite);
    }
    for runtime in RUNTIMES {
        assert!(rows.iter().any(|row| row[1] == runtime.name), "{} has no row", runtime.name);
    }
}
