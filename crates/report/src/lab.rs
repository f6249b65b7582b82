//! What `weir lab` shows: the list, one experiment, and the table at the end of all.

mod beside;
mod boxes;
pub mod step;

use weir_model::lab::{PreviousRun, PublishedTable};

use crate::block::Block;
use crate::style::{Emphasis, Style};
use crate::table::{Align, Column, ColumnPriority, Heading, Table, TableCell, TableRow};
use crate::terminal;

/// One experiment as a reader meets it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    /// Its name.
    pub name: String,
    /// The part of the book, as `B · where the bytes are`.
    pub theme: String,
    /// What most people would expect.
    pub expect: String,
    /// What happened, a line each.
    pub outcomes: Vec<Outcome>,
    /// What the run was drawn as, line by line; most experiments have none.
    pub picture: Vec<String>,
    /// Published tables beside ours.
    pub tables: Vec<PublishedTable>,
    /// Why.
    pub why: String,
    /// What to do about it.
    pub fix: String,
    /// Sentences for those who want to know: how it was compiled, how long it took.
    pub facts: Vec<String>,
    /// What is not as stated, or why it was not run.
    pub trouble: Option<String>,
    /// Commands to go on with.
    pub see: String,
}

/// One thing that was looked at, in both versions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What.
    pub what: String,
    /// What people expect there.
    pub expect: String,
    /// What the reader said before; None: was not asked, or said nothing.
    pub said: Option<String>,
    /// What the broken program did.
    pub broken: Option<Value>,
    /// What the fixed one did.
    pub fixed: Option<Value>,
}

/// What was seen, and whether it is as the experiment states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// What was seen.
    pub seen: String,
    /// Whether it is as stated.
    pub agrees: bool,
    /// Whether it is what people would expect.
    pub expected: bool,
}

/// One line of the list, or of the table at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// The part of the book, as `B · where the bytes are`.
    pub theme: String,
    /// The experiment's name.
    pub name: String,
    /// What happens.
    pub about: String,
    /// What was seen; the list has none.
    pub seen: String,
    /// As stated or not; None: not run.
    pub agrees: Option<bool>,
    /// The last run on this machine.
    pub previous: Option<PreviousRun>,
    /// Why it was not run, or what differs.
    pub reason: String,
}

/// One experiment on a terminal.
pub fn page(page: &Page, style: &Style) -> String {
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

fn outcomes(outcomes: &[Outcome]) -> Table {
    let mut columns = vec![
        Column::new("", "", Align::Left),
        Column::new("expected", "", Align::Left).priority(ColumnPriority::Rank(1)),
        Column::new("happens", "", Align::Left),
    ];
    let said = outcomes.iter().any(|outcome| outcome.said.is_some());
    if said {
        columns.insert(1, Column::new("you said", "", Align::Left));
    }
    let fixed = outcomes.iter().any(|outcome| outcome.fixed.is_some());
    if fixed {
        columns.push(Column::new("fixed", "", Align::Left));
    }
    let row = |outcome: &Outcome| {
        let mut cells =
            vec![outcome.what.clone().into(), outcome.expect.clone().into(), cell(&outcome.broken)];
        if said {
            cells.insert(1, outcome.said.clone().unwrap_or_default().into());
        }
        if fixed {
            cells.push(cell(&outcome.fixed));
        }
        TableRow { cells, ..TableRow::default() }
    };
    Table { columns, headings: Vec::new(), rows: outcomes.iter().map(row).collect(), bars: None }
}

fn cell(value: &Option<Value>) -> TableCell {
    let Some(value) = value else { return TableCell::default() };
    let (mark, emphasis) = match (value.agrees, value.expected) {
        (false, _) => (" ?", Emphasis::Bad),
        (true, true) => (" ✓", Emphasis::Plain),
        (true, false) => (" ✗", Emphasis::Strong),
    };
    TableCell::new(format!("{}{mark}", value.seen), emphasis)
}

/// The list, by theme, with what was already run here.
pub fn list(lines: &[Line], now_s: u64, style: &Style) -> String {
    let mut columns =
        vec![Column::new("experiment", "", Align::Left), Column::new("what happens", "", Align::Left)];
    if lines.iter().any(|line| line.previous.is_some()) {
        columns.push(Column::new("agreed here", "", Align::Left));
    }
    let cells = |line: &Line| {
        let previous = line.previous.as_ref().map_or_else(TableCell::default, |run| last_run(run, now_s));
        vec![line.name.clone().into(), line.about.clone().into(), previous]
    };
    let hint =
        "weir lab NAME runs one; with --step you go through it call by call; weir lab all --quick runs all";
    let blocks = [Block::Table(by_theme(lines, columns, cells)), Block::Aside(hint.into())];
    terminal::text(&blocks, style)
}

/// The table at the end of all: what was seen, and whether that is as stated; before it published tables beside ours.
pub fn summary(lines: &[Line], tables: &[&PublishedTable], style: &Style) -> String {
    let columns = vec![
        Column::new("experiment", "", Align::Left),
        Column::new("agrees", "", Align::Left),
        Column::new("seen", "", Align::Left),
    ];
    let cells = |line: &Line| {
        let (word, emphasis) = agreed(line.agrees);
        let seen = if line.reason.is_empty() { &line.seen } else { &line.reason };
        vec![line.name.clone().into(), TableCell::new(word, emphasis), seen.clone().into()]
    };
    let agree = lines.iter().filter(|line| line.agrees == Some(true)).count();
    let lead = format!("{agree} of {} experiments agree with what they state.", lines.len());
    let mut blocks: Vec<Block> = tables.iter().flat_map(|table| beside::blocks(table, true)).collect();
    blocks.extend([Block::Table(by_theme(lines, columns, cells)), Block::Lead(lead)]);
    terminal::text(&blocks, style)
}

/// `yes, 3 days ago, quick`.
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

/// How long it is since, in the largest unit that has passed.
fn ago(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        86_400..172_800 => "1 day ago".into(),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

fn by_theme(lines: &[Line], columns: Vec<Column>, cells: impl Fn(&Line) -> Vec<TableCell>) -> Table {
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
    fn how_long_ago_is_said_in_one_unit() {
        let said = [0, 59, 60, 7199, 86_399, 86_400, 3 * 86_400].map(ago);
        assert_eq!(
            said,
            ["0 s ago", "59 s ago", "1 min ago", "1 h ago", "23 h ago", "1 day ago", "3 days ago"]
        );
    }

    #[test]
    fn the_list_tells_of_earlier_runs_where_there_are_any() {
        let line = |name: &str, previous| Line {
            name: name.into(),
            about: "x".repeat(90),
            previous,
            ..Line::default()
        };
        let style = Style::default();
        assert!(!list(&[line("tail", None)], 1130, &style).contains("agreed here"));
        let of = |agrees, quick| Some(PreviousRun { at_s: 1000, quick, agrees });
        let text =
            list(&[line("tail", of(Some(true), true)), line("dots", of(Some(false), false))], 1130, &style);
        assert!(text.contains("agreed here") && text.contains("yes, 2 min ago, quick"), "{text}");
        assert!(text.contains("NO, 2 min ago, full"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
