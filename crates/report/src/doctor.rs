//! The screen of `weir doctor`.

use weir_model::doctor::{Doctor, EbpfHook, HostAbility};

use crate::style::Style;
use crate::text::wrap;

/// Width of the column with the names.
const NAME_WIDTH: usize = 16;

/// Returns the screen: one line for each ability, and below it what to do if the ability is missing.
pub fn screen(doctor: &Doctor, style: &Style) -> String {
    let mut lines = vec![format!("doctor · Linux {} · {} · uid {}", doctor.kernel, doctor.arch, doctor.uid)];
    lines.push(String::new());
    for ability in &doctor.abilities {
        lines.extend(ability_lines(ability, style));
        if ability.name == "ebpf" {
            lines.extend(hooks(&doctor.hooks));
        }
    }
    lines.join("\n") + "\n"
}

fn ability_lines(ability: &HostAbility, style: &Style) -> Vec<String> {
    let mark = if ability.works { "yes" } else { "no" };
    let (first, rest) =
        (format!("  {:NAME_WIDTH$}{mark:5}", ability.name), format!("  {:NAME_WIDTH$}     ", ""));
    let mut lines = wrap(&ability.detail, style.width, &first, &rest);
    if let Some(advice) = &ability.advice {
        lines.extend(wrap(advice, style.width, &format!("{rest}→ "), &format!("{rest}  ")));
    }
    lines
}

/// Returns a line for each part of the eBPF engine, with the hooks that the kernel refused.
pub fn hooks(hooks: &[EbpfHook]) -> Vec<String> {
    let mut lines = Vec::new();
    for hook in hooks {
        let taken = hook.hook.as_deref().unwrap_or("none");
        lines.push(format!("  {:NAME_WIDTH$}     {}: {taken}", "", hook.part));
        lines.extend(hook.refused.iter().map(|why| format!("  {:NAME_WIDTH$}       not {why}", "")));
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
            works,
            detail: "detail".into(),
            advice: advice.map(str::to_owned),
        };
        let doctor = Doctor {
            kernel: "6.1.0".into(),
            arch: "x86_64".into(),
            uid: 0,
            abilities: vec![ability("ebpf", true, None), ability("io_uring", false, Some("set a limit"))],
            hooks: vec![EbpfHook {
                part: "exits".into(),
                hook: Some("fentry taskstats_exit".into()),
                refused: vec!["tracepoint sched_process_exit: it has 1 arguments, not 2".into()],
            }],
        };
        let text = screen(&doctor, &Style::default());
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "doctor · Linux 6.1.0 · x86_64 · uid 0",
                "",
                "ebpf            yes  detail",
                "exits: fentry taskstats_exit",
                "not tracepoint sched_process_exit: it has 1 arguments, not 2",
                "io_uring        no   detail",
                "→ set a limit",
            ]
        );
    }
}
