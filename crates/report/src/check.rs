//! What `weir lab check` shows: a solution beside what its exercise asks, and what the exercises ask.

use crate::style::{Emphasis, Style};
use crate::text::{clean, width, wrap};

/// A solution that was judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The exercise and the file, as `copy · mine/copy.c`.
    pub title: String,
    /// How many requirements are met, in words.
    pub verdict: String,
    /// How it was compiled.
    pub command: String,
    /// What the compiler warned of.
    pub warnings: String,
    /// Every requirement.
    pub requirements: Vec<Requirement>,
}

/// One requirement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requirement {
    /// Its short name.
    pub name: String,
    /// What is asked.
    pub what: String,
    /// Whether it is so; None: that cannot be told here.
    pub met: Option<bool>,
    /// What was seen.
    pub seen: String,
    /// Where to look.
    pub see: String,
}

/// What an exercise asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exercise {
    /// Its name and arguments.
    pub usage: String,
    /// What the program is for.
    pub about: String,
    /// Short names, and what is asked.
    pub asks: Vec<(String, String)>,
}

/// Columns between a short name and its text.
const GAP: usize = 2;

/// A solution on a terminal.
pub fn page(page: &Page, style: &Style) -> String {
    let mut lines = vec![style.paint(Emphasis::Strong, &clean(&page.title, style))];
    if !page.command.is_empty() {
        lines.extend(wrap(&clean(&page.command, style), style.width, "  ", "    "));
    }
    lines.extend(page.warnings.lines().map(|line| format!("  {}", clean(line, style))));
    lines.push(String::new());
    let names = page.requirements.iter().map(|one| width(&one.name)).max().unwrap_or(0);
    lines.extend(page.requirements.iter().flat_map(|one| requirement(one, names, style)));
    lines.push(String::new());
    lines.extend(wrap(&clean(&page.verdict, style), style.width, "  ", "  "));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn requirement(one: &Requirement, names: usize, style: &Style) -> Vec<String> {
    let (mark, emphasis) = match one.met {
        Some(true) => ("✓", Emphasis::Good),
        Some(false) => ("✗", Emphasis::Bad),
        None => ("–", Emphasis::Faint),
    };
    let mut lines = named(&one.name, &one.what, names, "  ? ", style);
    lines[0] = lines[0].replacen('?', &style.paint(emphasis, &clean(mark, style)), 1);
    let rest = " ".repeat(4 + names + GAP);
    let mut more = |word: &str, text: &str| {
        let first = format!("{rest}{word}  ");
        let rest = " ".repeat(width(&first));
        // Lines of a compiler point at each other; sentences are wrapped.
        for (at, line) in text.lines().enumerate() {
            let first = if at == 0 { &first } else { &rest };
            match text.contains('\n') {
                true => lines.push(format!("{first}{}", clean(line, style))),
                false => lines.extend(wrap(&clean(line, style), style.width, first, &rest)),
            }
        }
    };
    more("seen", &one.seen);
    if one.met == Some(false) {
        more("look", &one.see);
    }
    lines
}

/// A short name, and its text in a column of its own.
fn named(name: &str, text: &str, names: usize, before: &str, style: &Style) -> Vec<String> {
    let first = format!("{before}{name}{}", " ".repeat(names - width(name) + GAP));
    wrap(&clean(text, style), style.width, &first, &" ".repeat(width(&first)))
}

/// What the exercises ask, on a terminal.
pub fn list(exercises: &[Exercise], style: &Style) -> String {
    exercises.iter().map(|exercise| of_list(exercise, style)).collect::<Vec<_>>().join("\n")
}

fn of_list(exercise: &Exercise, style: &Style) -> String {
    let mut lines = vec![style.paint(Emphasis::Strong, &clean(&exercise.usage, style))];
    lines.extend(wrap(&clean(&exercise.about, style), style.width, "  ", "  "));
    let names = exercise.asks.iter().map(|ask| width(&ask.0)).max().unwrap_or(0);
    lines.extend(exercise.asks.iter().flat_map(|ask| named(&ask.0, &ask.1, names, "    ", style)));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_stands_below_what_is_asked() {
        let of = |name: &str, met, seen: &str| Requirement {
            name: name.into(),
            what: "it moves blocks".into(),
            met,
            seen: seen.into(),
            see: "weir lab copy-sizes".into(),
        };
        let requirements = vec![
            of("calls", Some(false), "65537 calls"),
            of("empty", Some(true), ""),
            of("x", None, "no tracer"),
        ];
        let shown = page(
            &Page {
                title: "copy · copy.c".into(),
                verdict: "1 of 3".into(),
                requirements,
                ..Page::default()
            },
            &Style::default(),
        );
        let wanted = "\
copy · copy.c

  ✗ calls  it moves blocks
           seen  65537 calls
           look  weir lab copy-sizes
  ✓ empty  it moves blocks
  – x      it moves blocks
           seen  no tracer

  1 of 3
";
        assert_eq!(shown, wanted);
    }

    #[test]
    fn no_line_is_wider_than_the_screen() {
        let asks = vec![("name".to_string(), "a long sentence about what is asked ".repeat(5))];
        let shown = list(
            &[Exercise { usage: "copy FROM TO".into(), about: "copies ".repeat(30), asks }],
            &Style::default(),
        );
        assert!(shown.lines().count() > 4 && shown.lines().all(|line| width(line) <= 80), "{shown}");
    }
}
