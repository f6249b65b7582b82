//! The screen of `weir doctor`.

use weir_model::doctor::{Doctor, EbpfHook, HostAbility};

use crate::style::Style;
use crate::text::wrap;

/// Width of the column with the names.
const NAME_WIDTH: usize = 16;

/// Returns the screen: one line for each ability, and below it what to do if the ability is missing.
pub fn screen(doctor: &Doctor, style: &Style) -> String {
    let Doctor { kernel, arch, uid, .. } = doctor;
    let namespace = if doctor.user_namespace == Some(true) { " of a user namespace" } else { "" };
    let mut lines = vec![format!("doctor · Linux {kernel} · {arch} · uid {uid}{namespace}")];
    lines.push(String::new());
    for ability in &doctor.abilities {
        lines.extend(ability_lines(ability, style));
        if ability.name == "ebpf" {
            lines.extend(hooks(&doctor.hooks, style));
        }
    }
    lines.join("\n") + "\n"
}

fn ability_lines(ability: &HostAbility, style: &Style) -> Vec<String> {
    let mark = match (ability.tried, ability.works) {
        (false, _) => "?",
        (true, true) => "yes",
        (true, false) => "no",
    };
    let (first, rest) =
        (format!("  {:NAME_WIDTH$}{mark:5}", ability.name), format!("  {:NAME_WIDTH$}     ", ""));
    let mut lines = wrap(&ability.detail, style.width, &first, &rest);
    if let Some(advice) = &ability.advice {
        lines.extend(wrap(advice, style.width, &format!("{rest}→ "), &format!("{rest}  ")));
    }
    lines
}

/// Returns the parts of the eBPF engine with their hooks, and the hooks that the kernel refused. Lines break between words.
pub fn hooks(hooks: &[EbpfHook], style: &Style) -> Vec<String> {
    let indent = format!("  {:NAME_WIDTH$}     ", "");
    let mut lines = Vec::new();
    for hook in hooks {
        let taken = hook.hook.as_deref().unwrap_or("none");
        let line = |text: &str, indent: &str| wrap(text, style.width, indent, &format!("{indent}  "));
        lines.extend(line(&format!("{}: {taken}", hook.part), &indent));
        lines.extend(hook.refused.iter().flat_map(|why| line(&format!("not {why}"), &format!("{indent}  "))));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_ability_says_what_to_do() {
        let ability = |name, works: bool, advice: Option<&str>| HostAbility {
            name,
            tried: name != "cachestat",
            works,
            detail: "detail".into(),
            advice: advice.map(str::to_owned),
        };
        let doctor = Doctor {
            kernel: "6.1.0".into(),
            arch: "x86_64".into(),
            uid: 0,
            user_namespace: Some(true),
            abilities: vec![
                ability("ebpf", true, None),
                ability("io_uring", false, Some("set a limit")),
                ability("cachestat", false, Some("try elsewhere")),
            ],
            hooks: vec![EbpfHook {
                part: "exits".into(),
                hook: Some("fentry taskstats_exit".into()),
                refused: vec!["tracepoint sched_process_exit: it has 1 arguments, not 2".into()],
            }],
        };
        let text = screen(&doctor, &Style { width: 100, ..Style::default() });
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "doctor · Linux 6.1.0 · x86_64 · uid 0 of a user namespace",
                "",
                "ebpf            yes  detail",
                "exits: fentry taskstats_exit",
                "not tracepoint sched_process_exit: it has 1 arguments, not 2",
                "io_uring        no   detail",
                "→ set a limit",
                "cachestat       ?    detail",
                "→ try elsewhere",
            ]
        );
    }

    #[test]
    fn a_narrow_screen_breaks_lines_between_words() {
        let hook = EbpfHook {
            part: "buffers at exec".into(),
            hook: Some("tracepoint sched_prepare_exec".into()),
            refused: vec!["fentry begin_new_exec: the kernel has no such function".into()],
        };
        let lines = hooks(&[hook], &Style { width: 60, ..Style::default() });
        assert!(lines.iter().all(|line| line.chars().count() <= 60), "{lines:#?}");
        assert!(lines.iter().any(|line| line.trim() == "sched_prepare_exec"), "{lines:#?}");
    }
}
