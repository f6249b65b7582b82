//! The code of a policy in each language: a complete program that appends the lines of its standard input to a file.
//!
//! A program is a template of `templates/`, from which the lines of other policies are left out.

mod absent;
mod template;

use std::collections::{BTreeMap, BTreeSet};

use weir_model::Mode;
use weir_model::advise::{AdviceLanguage, AdviceQuestion, SyncPoint, WriteMethod};

use crate::write_policy::WritePolicy;

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

/// Returns the programs of a policy, by key, without those for which [`why_absent`] gives a reason. If the policy breaks a limit of the
/// question, the first comment of each program names it.
pub fn programs(
    policy: &WritePolicy,
    question: &AdviceQuestion,
    broken_limit: Option<&str>,
) -> BTreeMap<String, String> {
    let features = features(policy, question);
    let program = |&(key, template): &(&str, &str)| {
        let values = values(&in_language(key, policy), broken_limit);
        (key.to_string(), template::fill(template, &features, &values))
    };
    templates(policy.method).map(program).collect()
}

/// Returns the policy with the method that the program uses, so that its first comment names that method: only the program for
/// libweir uses libweir.
fn in_language(key: &str, policy: &WritePolicy) -> WritePolicy {
    let method = match (key, policy.mode) {
        _ if policy.is_for_experts() => policy.method,
        ("c-libweir", _) => WriteMethod::Libweir,
        (_, Mode::None) => WriteMethod::Syscall,
        _ => WriteMethod::Stdio,
    };
    WritePolicy { method, ..policy.clone() }
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
fn features(policy: &WritePolicy, question: &AdviceQuestion) -> BTreeSet<&'static str> {
    let timer = policy.timer_s().is_some();
    let group = policy.sync == SyncPoint::Group;
    let tests = [
        ("mmap", policy.method == WriteMethod::Mmap),
        ("direct", policy.method == WriteMethod::Direct),
        ("io_uring", policy.method == WriteMethod::IoUring),
        ("each", policy.mode == Mode::None),
        ("line", policy.mode == Mode::Line),
        ("gather", policy.gathers()),
        ("timer", timer),
        ("sync_record", policy.sync == SyncPoint::Record),
        ("dsync", policy.sync == SyncPoint::ODsync),
        ("group", group),
        ("period", policy.sync == SyncPoint::Period),
        ("synced", policy.sync != SyncPoint::None),
        ("threads", timer || group || question.sharers > 1),
    ];
    tests.into_iter().filter(|(_, holds)| *holds).map(|(word, _)| word).collect()
}

fn values(policy: &WritePolicy, broken_limit: Option<&str>) -> [(&'static str, String); 4] {
    let period_ms = (policy.timer_s().unwrap_or_default() * 1e3).round().max(1.0) as u64;
    let warning = broken_limit.map(|limit| format!("; it BREAKS A LIMIT: {limit}")).unwrap_or_default();
    [
        ("@NAME@", policy.name() + &warning),
        ("@BUFFER@", policy.buffer_bytes.max(4096).to_string()),
        ("@PERIOD_MS@", period_ms.to_string()),
        ("@PERIOD_S@", format!("{}.{:03}", period_ms / 1000, period_ms % 1000)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::question;
    use crate::write_policy::write_policies;

    #[test]
    fn every_program_is_complete() {
        let shared = AdviceQuestion { sharers: 3, ..question() };
        let of = |question: AdviceQuestion| {
            write_policies(&question).into_iter().map(move |policy| (policy, question.clone()))
        };
        for (policy, question) in of(question()).chain(of(shared)) {
            let programs = programs(&policy, &question, None);
            let absent = STREAMS.iter().filter(|(key, _)| why_absent(key, policy.method).is_some()).count();
            assert_eq!(programs.len() + absent, STREAMS.len(), "{}", policy.name());
            for (key, text) in programs {
                assert!(text.len() > 200, "{key}: {}", policy.name());
                let values = ["@NAME@", "@BUFFER@", "@PERIOD_MS@", "@PERIOD_S@"];
                assert!(values.iter().all(|value| !text.contains(value)), "{key}: {}", policy.name());
                assert!(
                    text.lines().all(|line| !line.trim_start().starts_with('%')),
                    "{key}: {}",
                    policy.name()
                );
                // Python has two blank lines between definitions.
                assert!(key == "python" || !text.contains("\n\n\n"), "{key}: {}", policy.name());
            }
        }
    }

    #[test]
    fn a_synced_program_syncs_and_others_do_not() {
        for policy in write_policies(&question()).into_iter().filter(|policy| !policy.is_for_experts()) {
            for (key, text) in programs(&policy, &question(), None) {
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
                assert_eq!(found, policy.sync != SyncPoint::None, "{key}: {}", policy.name());
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
        let experts = write_policies(&question()).into_iter().filter(WritePolicy::is_for_experts);
        let mut seen = 0;
        for policy in experts {
            for (key, text) in programs(&policy, &question(), None) {
                assert!(
                    calls(policy.method).iter().any(|call| text.contains(call)),
                    "{key}: {}",
                    policy.name()
                );
                assert!(text.contains(&policy.name()), "{key}: {}", policy.name());
                seen += 1;
            }
        }
        assert_eq!(seen, 6 + 7 + 2 + 6, "programs of the four methods");
    }

    #[test]
    fn each_language_has_programs() {
        for lang in AdviceLanguage::ALL {
            let programs = programs(&write_policies(&question())[0], &question(), None);
            assert!(keys(*lang).iter().all(|key| programs.contains_key(*key)), "{lang:?}");
        }
    }
}
