//! The files in docs/ that are generated from the rules, and what the rules must have in common. `make generate` (that is,
//! WEIR_GENERATE=1) makes the tests rewrite the files instead of comparing them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use weir_model::Severity;

use crate::rule::{GainKind, Rule, SeverityRule, Supersedes};
use crate::rules;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Compares the part of a file between two marks with what it should be, or replaces it.
#[track_caller]
fn check_part(path: &Path, [before, start, end]: [&str; 3], expected: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    let find = |from: usize, mark: &str| {
        text[from..].find(mark).map(|at| from + at).unwrap_or_else(|| panic!("{path:?} has no {mark:?}"))
    };
    let first = find(find(0, before), start) + start.len();
    let last = find(first, end);
    if std::env::var_os("WEIR_GENERATE").is_some() {
        std::fs::write(path, format!("{}{expected}{}", &text[..first], &text[last..])).unwrap();
    } else {
        assert_eq!(&text[first..last], expected, "{path:?} is out of date: run `make generate`");
    }
}

fn name(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warn => "warn",
        Severity::High => "high",
    }
}

fn row(rule: &Rule) -> String {
    let severity = match rule.severity {
        SeverityRule::Cost { most } => format!("by cost, at most {}", name(most)),
        SeverityRule::Effect { least, most } if least == most => name(most).into(),
        SeverityRule::Effect { least, most } => format!("{} to {}", name(least), name(most)),
    };
    let gain = match rule.gain {
        GainKind::None => "–",
        GainKind::CpuTime => "CPU time",
        GainKind::SpinTime => "CPU time of a busy loop",
        GainKind::WaitTime => "waiting time",
    };
    format!("| `{}` | {} | {} | {severity} | {gain} |\n", rule.id, rule.title, rule.meaning)
}

#[test]
fn generated_table_of_findings() {
    let head = "| finding | what you notice | what happens | severity | gain |\n|---|---|---|---|---|\n";
    let table: String = rules().iter().map(|rule| row(rule)).collect();
    let marks = ["<!-- generated: findings -->", "\n", "<!-- end -->"];
    check_part(&docs().join("trace.md"), marks, &format!("{head}{table}"));
}

#[test]
fn generated_identifiers_in_the_schema() {
    let ids: Vec<_> = rules().iter().map(|rule| format!("\n            \"{}\"", rule.id)).collect();
    let schema = docs().join("schemas/weir-trace-1.schema.json");
    check_part(&schema, ["\"finding\": {", "\"enum\": [", "\n          ]"], &ids.join(","));
}

#[test]
fn every_rule_is_complete_and_knows_those_that_it_supersedes() {
    let ids: BTreeSet<_> = rules().iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), rules().len(), "identifiers are unique");
    assert!(ids.len() >= 29, "no rule is lost");
    for rule in rules() {
        let plain = |c: char| c.is_ascii_lowercase() || c == '-';
        assert!(!rule.id.is_empty() && rule.id.chars().all(plain), "{:?}", rule.id);
        assert!(!rule.title.is_empty() && !rule.meaning.is_empty(), "{}", rule.id);
        assert!(!rule.meaning.ends_with('.') && !rule.meaning.contains('|'), "{}", rule.id);
        for Supersedes::OnStream(other) | Supersedes::OnPath(other) in rule.supersedes {
            assert!(ids.contains(other) && *other != rule.id, "{} supersedes {other}", rule.id);
        }
    }
}

#[test]
fn rules_do_not_use_each_other() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let id = path.file_stem().unwrap().to_string_lossy().replace('_', "-");
        assert!(text.contains(&format!("id: \"{id}\"")), "{path:?}: a file has the name of its finding");
        assert!(!text.contains("super::") && !text.contains("crate::rules::"), "{path:?}: imports a rule");
    }
}
