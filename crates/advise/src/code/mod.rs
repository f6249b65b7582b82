//! The code of a way in each language: a complete program that appends the lines of its standard input to a file.
//!
//! A program is a template of `templates/`, from which the lines of other ways are left out.

mod template;

use std::collections::{BTreeMap, BTreeSet};

use weir_model::Mode;
use weir_model::advise::{AdviceLanguage, AdviceQuestion, SyncPoint, WriteMethod};

use crate::way::Way;

/// Key in [`weir_model::advise::Choice::code`], and the template.
const TEMPLATES: [(&str, &str); 9] = [
    ("c", include_str!("../../templates/log.c")),
    ("c-libweir", include_str!("../../templates/log_libweir.c")),
    ("cpp", include_str!("../../templates/log.cpp")),
    ("python", include_str!("../../templates/log.py")),
    ("rust", include_str!("../../templates/log.rs")),
    ("go", include_str!("../../templates/log.go")),
    ("java", include_str!("../../templates/Log.java")),
    ("node", include_str!("../../templates/log.js")),
    ("shell", include_str!("../../templates/log.sh")),
];

/// Returns the programs of a way by language.
pub fn programs(way: &Way, question: &AdviceQuestion) -> BTreeMap<String, String> {
    let features = features(way, question);
    let program = |&(key, template): &(&str, &str)| {
        let values = values(&in_language(key, way));
        (key.to_string(), template::fill(template, &features, &values))
    };
    TEMPLATES.iter().map(program).collect()
}

/// Returns the way with the method of a program, for its name: only the program for libweir uses libweir.
fn in_language(key: &str, way: &Way) -> Way {
    let method = match (key, way.mode) {
        ("c-libweir", _) => WriteMethod::Libweir,
        (_, Mode::None) => WriteMethod::Syscall,
        _ => WriteMethod::Stdio,
    };
    Way { method, ..way.clone() }
}

/// Returns the keys of the programs that answer a question in this language, the plain one first.
pub fn keys(lang: AdviceLanguage) -> &'static [&'static str] {
    match lang {
        AdviceLanguage::C => &["c", "c-libweir"],
        AdviceLanguage::Cpp => &["cpp", "c-libweir"],
        AdviceLanguage::Python => &["python"],
        AdviceLanguage::Rust => &["rust"],
        AdviceLanguage::Go => &["go"],
        AdviceLanguage::Java => &["java"],
        AdviceLanguage::Node => &["node"],
        AdviceLanguage::Shell => &["shell"],
    }
}

/// Returns the words that the templates test.
fn features(way: &Way, question: &AdviceQuestion) -> BTreeSet<&'static str> {
    let timer = way.timer_s().is_some();
    let group = way.sync == SyncPoint::Group;
    let tests = [
        ("each", way.mode == Mode::None),
        ("line", way.mode == Mode::Line),
        ("gather", way.gathers()),
        ("timer", timer),
        ("sync_record", way.sync == SyncPoint::Record),
        ("dsync", way.sync == SyncPoint::ODsync),
        ("group", group),
        ("period", way.sync == SyncPoint::Period),
        ("synced", way.sync != SyncPoint::None),
        ("threads", timer || group || question.sharers > 1),
    ];
    tests.into_iter().filter(|(_, holds)| *holds).map(|(word, _)| word).collect()
}

fn values(way: &Way) -> [(&'static str, String); 4] {
    let period_ms = (way.timer_s().unwrap_or_default() * 1e3).round().max(1.0) as u64;
    [
        ("@NAME@", way.name()),
        ("@BUFFER@", way.buffer_bytes.max(4096).to_string()),
        ("@PERIOD_MS@", period_ms.to_string()),
        ("@PERIOD_S@", format!("{}.{:03}", period_ms / 1000, period_ms % 1000)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::question;
    use crate::way::ways;

    #[test]
    fn every_program_is_complete() {
        let shared = AdviceQuestion { sharers: 3, ..question() };
        for way in ways(&question()).into_iter().chain(ways(&shared)) {
            let programs = programs(&way, &question());
            assert_eq!(programs.len(), TEMPLATES.len());
            for (key, text) in programs {
                assert!(text.len() > 200, "{key}: {}", way.name());
                let values = ["@NAME@", "@BUFFER@", "@PERIOD_MS@", "@PERIOD_S@"];
                assert!(values.iter().all(|value| !text.contains(value)), "{key}: {}", way.name());
                assert!(
                    text.lines().all(|line| !line.trim_start().starts_with('%')),
                    "{key}: {}",
                    way.name()
                );
                // Python has two blank lines between definitions.
                assert!(key == "python" || !text.contains("\n\n\n"), "{key}: {}", way.name());
            }
        }
    }

    #[test]
    fn a_synced_program_syncs_and_others_do_not() {
        for way in ways(&question()).into_iter().filter(|way| !way.is_for_experts()) {
            for (key, text) in programs(&way, &question()) {
                let syncs = [
                    "fdatasync",
                    "sync_data",
                    ".force(",
                    "WEIR_DATA",
                    "DSYNC",
                    "Fdatasync",
                    "--sync",
                    "sync -d",
                ];
                let found = syncs.iter().any(|word| text.contains(word));
                assert_eq!(found, way.sync != SyncPoint::None, "{key}: {}", way.name());
            }
        }
    }

    #[test]
    fn each_language_has_programs() {
        for lang in AdviceLanguage::ALL {
            let programs = programs(&ways(&question())[0], &question());
            assert!(keys(*lang).iter().all(|key| programs.contains_key(*key)), "{lang:?}");
        }
    }
}
