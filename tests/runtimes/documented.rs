//! The table in docs/runtimes.md: written from a measurement, and compared with the expected abilities.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::abilities::ABILITIES;
use super::roots::RELEASES;
use super::table::RUNTIMES;

const BEGIN: &str = "<!-- measured: runtimes -->\n";
const END: &str = "<!-- end -->";

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/runtimes.md")
}

/// Writes the rows of a measurement into the page.
pub fn generate(document: &Value) {
    let mut lines = vec![
        format!("| release | runtime | version | {} | measured | why not |", ABILITIES.join(" | ")),
        format!("|{}", "---|".repeat(ABILITIES.len() + 5)),
    ];
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_string();
    for row in document["rows"].as_array().into_iter().flatten() {
        let marks = ABILITIES.map(|name| if row[name] == true { "yes" } else { "no" });
        let [release, runtime, version, measured, why] =
            ["release", "runtime", "version", "measured", "why"].map(|name| text(row, name));
        let marks = marks.join(" | ");
        lines.push(format!("| {release} | {runtime} | {version} | {marks} | {measured} | {why} |"));
    }
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

/// The page must not claim what the test of the abilities does not demand, nor hide a runtime.
#[test]
fn the_page_has_the_expected_abilities() {
    let page = fs::read_to_string(page()).expect("docs/runtimes.md");
    let table = page.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)).expect("a table").0;
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(2)
        .filter(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
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
