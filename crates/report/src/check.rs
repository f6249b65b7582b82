//! The screens of `weir lab check`: a judged solution, and the requirements of the exercises.

use weir_model::lab::check::{CheckReport, ExerciseSummary, JudgedRequirement, RequirementStatus};

use crate::style::{Emphasis, Style};
use crate::text::{clean, width, wrap};

/// Spaces between a short name and its text.
const GAP: usize = 2;

/// Returns a report as text for a terminal.
pub fn screen(report: &CheckReport, style: &Style) -> String {
    let title = format!("{} · {}", report.exercise, report.program);
    let mut lines = vec![style.paint(Emphasis::Strong, &clean(&title, style))];
    if let Some(command) = &report.command {
        lines.extend(wrap(&clean(command, style), style.width, "  ", "    "));
    }
    lines.extend(report.warnings.lines().map(|line| format!("  {}", clean(line, style))));
    lines.push(String::new());
    let names = report.requirements.iter().map(|one| width(one.id)).max().unwrap_or(0);
    lines.extend(report.requirements.iter().flat_map(|one| requirement(one, names, style)));
    lines.push(String::new());
    let verdict = format!("{} of {} requirements are met.", report.met(), report.requirements.len());
    lines.extend(wrap(&clean(&verdict, style), style.width, "  ", "  "));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn requirement(one: &JudgedRequirement, names: usize, style: &Style) -> Vec<String> {
    let (mark, emphasis) = match one.met {
        RequirementStatus::Yes => ("✓", Emphasis::Good),
        RequirementStatus::No => ("✗", Emphasis::Bad),
        RequirementStatus::Unknown => ("–", Emphasis::Faint),
    };
    let mut lines = named(one.id, one.what, names, "  ? ", style);
    lines[0] = lines[0].replacen('?', &style.paint(emphasis, &clean(mark, style)), 1);
    let rest = " ".repeat(4 + names + GAP);
    let mut more = |word: &str, text: &str| {
        let first = format!("{rest}{word}  ");
        let rest = " ".repeat(width(&first));
        // The lines of a compiler's message are aligned and must not be wrapped.
        for (at, line) in text.lines().enumerate() {
            let first = if at == 0 { &first } else { &rest };
            match text.contains('\n') {
                true => lines.push(format!("{first}{}", clean(line, style))),
                false => lines.extend(wrap(&clean(line, style), style.width, first, &rest)),
            }
        }
    };
    more("seen", &one.seen);
    if one.met == RequirementStatus::No {
        more("look", one.see);
    }
    lines
}

/// Returns a short name and its text, wrapped in a separate column.
fn named(name: &str, text: &str, names: usize, before: &str, style: &Style) -> Vec<String> {
    let first = format!("{before}{name}{}", " ".repeat(names - width(name) + GAP));
    wrap(&clean(text, style), style.width, &first, &" ".repeat(width(&first)))
}

/// Returns the requirements of the exercises as text for a terminal.
pub fn list(exercises: &[ExerciseSummary], style: &Style) -> String {
    exercises.iter().map(|exercise| of_list(exercise, style)).collect::<Vec<_>>().join("\n")
}

fn of_list(exercise: &ExerciseSummary, style: &Style) -> String {
    let mut lines = vec![style.paint(Emphasis::Strong, &clean(&exercise.usage, style))];
    lines.extend(wrap(&clean(&exercise.about, style), style.width, "  ", "  "));
    let names = exercise.requirements.iter().map(|ask| width(&ask.0)).max().unwrap_or(0);
    lines.extend(exercise.requirements.iter().flat_map(|ask| named(&ask.0, &ask.1, names, "    ", style)));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_below_its_requirement() {
        let judged = |id, met, seen: &str| JudgedRequirement {
            id,
            what: "it moves blocks",
            met,
            seen: seen.into(),
            see: "weir lab copy-sizes",
        };
        let requirements = vec![
            judged("calls", RequirementStatus::No, "65537 calls"),
            judged("empty", RequirementStatus::Yes, ""),
            judged("x", RequirementStatus::Unknown, "no tracer"),
        ];
        let report = CheckReport {
            schema: "weir-lab-check/1",
            exercise: "copy",
            program: "copy.c".into(),
            command: None,
            warnings: String::new(),
            requirements,
            well: false,
        };
        let shown = screen(&report, &Style::default());
        let wanted = "\
copy · copy.c

  ✗ calls  it moves blocks
           seen  65537 calls
           look  weir lab copy-sizes
  ✓ empty  it moves blocks
  – x      it moves blocks
           seen  no tracer

  1 of 3 requirements are met.
";
        assert_eq!(shown, wanted);
    }

    #[test]
    fn no_line_is_wider_than_the_screen() {
        let requirements = vec![("name".to_string(), "a long sentence about what is asked ".repeat(5))];
        let shown = list(
            &[ExerciseSummary { usage: "copy FROM TO".into(), about: "copies ".repeat(30), requirements }],
            &Style::default(),
        );
        assert!(shown.lines().count() > 4 && shown.lines().all(|line| width(line) <= 80), "{shown}");
    }
}
