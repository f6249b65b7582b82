//! The screens of `weir lab`: the list, one experiment, the summary of all.

mod beside;
mod boxes;
pub mod step;

use weir_model::lab::{PreviousRun, PublishedTable};

use crate::block::Block;
use crate::style::{Emphasis, Style};
use crate::table::{Align, Column, ColumnPriority, Heading, Table, TableCell, TableRow};
use crate::terminal;

/// One experiment and its result.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs)]
pub struct LabPage {
    pub name: String,
    /// Letter and title of the theme: `B · where the bytes are`.
    pub theme: String,
    /// What most people expect.
    pub expect: String,
    /// Observed outcomes, in the order of lab.toml.
    pub outcomes: Vec<OutcomeLine>,
    /// Drawing of the run, line by line; empty for most experiments.
    pub picture: Vec<String>,
    /// Published tables beside this machine's figures.
    pub tables: Vec<PublishedTable>,
    pub why: String,
    pub fix: String,
    /// Details: how the program was compiled, how long the run took.
    pub facts: Vec<String>,
    /// The difference to the statement, or why the experiment did not run.
    pub trouble: Option<String>,
    /// Commands that show more of the experiment.
    pub see: String,
}

/// One observed quantity in both versions of the program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutcomeLine {
    /// Name of the quantity.
    pub what: String,
    /// ObservedValue that most people expect.
    pub expect: String,
    /// The reader's prediction; `None` without one.
    pub predicted: Option<String>,
    /// ObservedValue of the broken program.
    pub broken: Option<ObservedValue>,
    /// ObservedValue of the fixed program.
    pub fixed: Option<ObservedValue>,
}

/// An observed value and its comparison with statement and expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedValue {
    /// The value as text.
    pub seen: String,
    /// The value is as the experiment states.
    pub agrees: bool,
    /// The value is what most people expect.
    pub expected: bool,
}

/// One line of the list or of the summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabLine {
    /// Letter and title of the theme: `B · where the bytes are`.
    pub theme: String,
    /// Name of the experiment.
    pub name: String,
    /// Description in one line, from lab.toml.
    pub about: String,
    /// Observed outcomes; empty in the list.
    pub seen: String,
    /// The outcomes are as stated; `None` if the experiment did not run.
    pub agrees: Option<bool>,
    /// The last run on this machine.
    pub previous: Option<PreviousRun>,
    /// Why the experiment did not run, or the difference to its statement.
    pub reason: String,
}

/// Returns one experiment as text for a terminal.
pub fn page(page: &LabPage, style: &Style) -> String {
    let mut blocks = vec![Block::Title(format!("{} · {}", page.name, page.theme))];
    blocks.push(Block::Answer { question: "You would expect:".into(), answer: page.expect.clone() });
    if !page.outcomes.is_empty() {
        blocks.push(Block::Table(outcomes(&page.outcomes)));
    }
    if !page.picture.is_empty() {
        blocks.push(Block::Picture(page.picture.clone()));
    }
    blocks.extend(page.trouble.clone().map(Block::Warning));
    blocks.push(Block::Answer { question: "Why:".into(), answer: page.why.clone() });
    if !page.fix.is_empty() {
        blocks.push(Block::Answer { question: "Fix:".into(), answer: page.fix.clone() });
    }
    blocks.push(Block::Facts(page.facts.clone()));
    blocks.push(Block::Aside(page.see.clone()));
    blocks.extend(page.tables.iter().flat_map(|table| beside::blocks(table, false)));
    terminal::text(&blocks, style)
}

fn outcomes(outcomes: &[OutcomeLine]) -> Table {
    let mut columns = vec![
        Column::new("", "", Align::Left),
        Column::new("expected", "", Align::Left).priority(ColumnPriority::Rank(1)),
        Column::new("happens", "", Align::Left),
    ];
    let predicted = outcomes.iter().any(|outcome| outcome.predicted.is_some());
    if predicted {
        columns.insert(1, Column::new("you said", "", Align::Left));
    }
    let fixed = outcomes.iter().any(|outcome| outcome.fixed.is_some());
    if fixed {
        columns.push(Column::new("fixed", "", Align::Left));
    }
    let row = |outcome: &OutcomeLine| {
        let mut cells =
            vec![outcome.what.clone().into(), outcome.expect.clone().into(), cell(&outcome.broken)];
        if predicted {
            cells.insert(1, outcome.predicted.clone().unwrap_or_default().into());
        }
        if fixed {
            cells.push(cell(&outcome.fixed));
        }
        TableRow { cells, ..TableRow::default() }
    };
    Table { columns, headings: Vec::new(), rows: outcomes.iter().map(row).collect(), bars: None }
}

fn cell(value: &Option<ObservedValue>) -> TableCell {
    let Some(value) = value else { return TableCell::default() };
    let (mark, emphasis) = match (value.agrees, value.expected) {
        (false, _) => (" ?", Emphasis::Bad),
        (true, true) => (" ✓", Emphasis::Plain),
        (true, false) => (" ✗", Emphasis::Strong),
    };
    TableCell::new(format!("{}{mark}", value.seen), emphasis)
}

/// Returns the list by theme with the last results; `now_s` is the time in seconds since 1970.
pub fn list(lines: &[LabLine], now_s: u64, style: &Style) -> String {
    let mut columns =
        vec![Column::new("experiment", "", Align::Left), Column::new("what happens", "", Align::Left)];
    if lines.iter().any(|line| line.previous.is_some()) {
        columns.push(Column::new("agreed here", "", Align::Left));
    }
    let cells = |line: &LabLine| {
        let previous = line.previous.as_ref().map_or_else(TableCell::default, |run| last_run(run, now_s));
        vec![line.name.clone().into(), line.about.clone().into(), previous]
    };
    let hint =
        "weir lab NAME runs one; with --step you go through it call by call; weir lab all --quick runs all";
    let blocks = [Block::Table(by_theme(lines, columns, cells)), Block::Aside(hint.into())];
    terminal::text(&blocks, style)
}

/// Returns the published tables, then a table with the outcomes of all experiments.
pub fn summary(lines: &[LabLine], tables: &[&PublishedTable], style: &Style) -> String {
    let columns = vec![
        Column::new("experiment", "", Align::Left),
        Column::new("agrees", "", Align::Left),
        Column::new("seen", "", Align::Left),
    ];
    let cells = |line: &LabLine| {
        let (word, emphasis) = agreed(line.agrees);
        let text = if line.reason.is_empty() { &line.seen } else { &line.reason };
        vec![line.name.clone().into(), TableCell::new(word, emphasis), text.clone().into()]
    };
    let agree = lines.iter().filter(|line| line.agrees == Some(true)).count();
    let lead = format!("{agree} of {} experiments agree with what they state.", lines.len());
    let mut blocks: Vec<Block> = tables.iter().flat_map(|table| beside::blocks(table, true)).collect();
    blocks.extend([Block::Table(by_theme(lines, columns, cells)), Block::Lead(lead)]);
    terminal::text(&blocks, style)
}

/// Returns the cell for a previous run: `yes, 3 days ago, quick`.
fn last_run(run: &PreviousRun, now_s: u64) -> TableCell {
    let (word, emphasis) = agreed(run.agrees);
    let size = if run.quick { "quick" } else { "full" };
    TableCell::new(format!("{word}, {}, {size}", ago(run.age_s(now_s))), emphasis)
}

fn agreed(agrees: Option<bool>) -> (&'static str, Emphasis) {
    match agrees {
        Some(true) => ("yes", Emphasis::Plain),
        Some(false) => ("NO", Emphasis::Bad),
        None => ("–", Emphasis::Faint),
    }
}

/// Returns an age in its largest whole unit.
fn ago(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        86_400..172_800 => "1 day ago".into(),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

fn by_theme(lines: &[LabLine], columns: Vec<Column>, cells: impl Fn(&LabLine) -> Vec<TableCell>) -> Table {
    let mut headings: Vec<Heading> = Vec::new();
    let mut rows = Vec::new();
    for line in lines {
        if headings.last().is_none_or(|last| last.text != line.theme) {
            headings.push(Heading { text: line.theme.clone(), series: None });
        }
        rows.push(TableRow { heading: Some(headings.len() - 1), cells: cells(line), ..TableRow::default() });
    }
    Table { columns, headings, rows, bars: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        let texts = [0, 59, 60, 7199, 86_399, 86_400, 3 * 86_400].map(ago);
        assert_eq!(
            texts,
            ["0 s ago", "59 s ago", "1 min ago", "1 h ago", "23 h ago", "1 day ago", "3 days ago"]
        );
    }

    #[test]
    fn the_list_shows_previous_runs() {
        let line = |name: &str, previous| LabLine {
            name: name.into(),
            about: "x".repeat(90),
            previous,
            ..LabLine::default()
        };
        let style = Style::default();
        assert!(!list(&[line("tail", None)], 1130, &style).contains("agreed here"));
        let run = |agrees, quick| Some(PreviousRun { at_s: 1000, quick, agrees });
        let text =
            list(&[line("tail", run(Some(true), true)), line("dots", run(Some(false), false))], 1130, &style);
        assert!(text.contains("agreed here") && text.contains("yes, 2 min ago, quick"), "{text}");
        assert!(text.contains("NO, 2 min ago, full"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
