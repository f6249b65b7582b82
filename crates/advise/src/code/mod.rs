//! The code of a way in each language: a complete program that appends the lines of its standard input to a file.
//!
//! A program is a template of `templates/`, from which the lines of other ways are left out.

mod absent;
mod template;

use std::collections::{BTreeMap, BTreeSet};

use weir_model::Mode;
use weir_model::advise::{AdviceLanguage, AdviceQuestion, SyncPoint, WriteMethod};

use crate::way::Way;

pub use absent::why_absent;

/// Key in [`weir_model::advise::Choice::code`], and the template.
type Template = (&'static str, &'static str);

/// Programs that use write(2), the streams of the language or libweir.
const STREAMS: [Template; 9] = [
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

/// Programs that use a shared mapping or O_DIRECT.
const BLOCKS: [Template; 7] = [
    ("c", include_str!("../../templates/blocks.c")),
    ("cpp", include_str!("../../templates/blocks.cpp")),
    ("python", include_str!("../../templates/blocks.py")),
    ("rust", include_str!("../../templates/blocks.rs")),
    ("go", include_str!("../../templates/blocks.go")),
    ("java", include_str!("../../templates/Blocks.java")),
    ("shell", include_str!("../../templates/blocks.sh")),
];

/// Programs that copy inside the kernel.
const COPIES: [Template; 6] = [
    ("c", include_str!("../../templates/copy.c")),
    ("cpp", include_str!("../../templates/copy.cpp")),
    ("python", include_str!("../../templates/copy.py")),
    ("rust", include_str!("../../templates/copy.rs")),
    ("go", include_str!("../../templates/copy.go")),
    ("java", include_str!("../../templates/Copy.java")),
];

/// Returns the templates of a method. Those of [`why_absent`] have none.
fn templates(method: WriteMethod) -> impl Iterator<Item = &'static Template> {
    let all: &[Template] = match method {
        WriteMethod::Syscall | WriteMethod::Stdio | WriteMethod::Libweir => &STREAMS,
        WriteMethod::Mmap | WriteMethod::Direct | WriteMethod::IoUring => &BLOCKS,
        WriteMethod::InKernel => &COPIES,
    };
    all.iter().filter(move |(key, _)| why_absent(key, method).is_none())
}

/// Returns the programs of a way, by key, without those for which [`why_absent`] gives a reason. If the way breaks a limit of the
/// question, the first comment of each program names it.
pub fn programs(
    way: &Way,
    question: &AdviceQuestion,
    broken_limit: Option<&str>,
) -> BTreeMap<String, String> {
    let features = features(way, question);
    let program = |&(key, template): &(&str, &str)| {
        let values = values(&in_language(key, way), broken_limit);
        (key.to_string(), template::fill(template, &features, &values))
    };
    templates(way.method).map(program).collect()
}

/// Returns the way with the method that the program uses, so that its first comment names that method: only the program for
/// libweir uses libweir.
fn in_language(key: &str, way: &Way) -> Way {
    let method = match (key, way.mode) {
        _ if way.is_for_experts() => way.method,
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
        ("mmap", way.method == WriteMethod::Mmap),
        ("direct", way.method == WriteMethod::Direct),
        ("io_uring", way.method == WriteMethod::IoUring),
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

fn values(way: &Way, broken_limit: Option<&str>) -> [(&'static str, String); 4] {
    let period_ms = (way.timer_s().unwrap_or_default() * 1e3).round().max(1.0) as u64;
    let warning = broken_limit.map(|limit| format!("; it BREAKS A LIMIT: {limit}")).unwrap_or_default();
    [
        ("@NAME@", way.name() + &warning),
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
        let of =
            |question: AdviceQuestion| ways(&question).into_iter().map(move |way| (way, question.clone()));
        for (way, question) in of(question()).chain(of(shared)) {
            let programs = programs(&way, &question, None);
            let absent = STREAMS.iter().filter(|(key, _)| why_absent(key, way.method).is_some()).count();
            assert_eq!(programs.len() + absent, STREAMS.len(), "{}", way.name());
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
            for (key, text) in programs(&way, &question(), None) {
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
    fn the_program_of_a_method_uses_the_method() {
        let calls = |method: WriteMethod| match method {
            WriteMethod::Mmap => ["mmap(", "mmap.mmap(", "syscall.Mmap(", "file.map("].as_slice(),
            WriteMethod::Direct => ["O_DIRECT", "ExtendedOpenOption.DIRECT", "oflag=direct"].as_slice(),
            WriteMethod::IoUring => ["io_uring_prep_write("].as_slice(),
            WriteMethod::InKernel => ["copy_file_range(", "io::copy(", "io.Copy(", "transferTo("].as_slice(),
            _ => [].as_slice(),
        };
        let experts = ways(&question()).into_iter().filter(Way::is_for_experts);
        let mut seen = 0;
        for way in experts {
            for (key, text) in programs(&way, &question(), None) {
                assert!(calls(way.method).iter().any(|call| text.contains(call)), "{key}: {}", way.name());
                assert!(text.contains(&way.name()), "{key}: {}", way.name());
                seen += 1;
            }
        }
        assert_eq!(seen, 6 + 7 + 2 + 6, "programs of the four methods");
    }

    #[test]
    fn each_language_has_programs() {
        for lang in AdviceLanguage::ALL {
            let programs = programs(&ways(&question())[0], &question(), None);
            assert!(keys(*lang).iter().all(|key| programs.contains_key(*key)), "{lang:?}");
        }
    }
}
