//! What `weir lab` shows: the list, one experiment, and the table at the end of all.

mod boxes;
pub mod step;

use crate::block::Block;
use crate::style::{Emphasis, Style};
use crate::table::{Align, Cell, Column, Heading, Keep, Row, Table};
use crate::terminal;

/// One experiment as a reader meets it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    terminal::text(&blocks, style)
}

fn outcomes(outcomes: &[Outcome]) -> Table {
    let mut columns = vec![
        Column::new("", "", Align::Left),
        Column::new("expected", "", Align::Left).keep(Keep::Rank(1)),
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
        Row { cells, ..Row::default() }
    };
    Table { columns, headings: Vec::new(), rows: outcomes.iter().map(row).collect(), bars: None }
}

fn cell(value: &Option<Value>) -> Cell {
    let Some(value) = value else { return Cell::default() };
    let (mark, emphasis) = match (value.agrees, value.expected) {
        (false, _) => (" ?", Emphasis::Bad),
        (true, true) => (" ✓", Emphasis::Plain),
        (true, false) => (" ✗", Emphasis::Strong),
    };
    Cell::new(format!("{}{mark}", value.seen), emphasis)
}

/// The list, by theme.
pub fn list(lines: &[Line], style: &Style) -> String {
    let columns =
        vec![Column::new("experiment", "", Align::Left), Column::new("what happens", "", Align::Left)];
    let cells = |line: &Line| vec![line.name.clone().into(), line.about.clone().into()];
    terminal::text(&[Block::Table(by_theme(lines, columns, cells))], style)
}

/// The table at the end of all: what was seen, and whether that is as stated.
pub fn summary(lines: &[Line], style: &Style) -> String {
    let columns = vec![
        Column::new("experiment", "", Align::Left),
        Column::new("agrees", "", Align::Left),
        Column::new("seen", "", Align::Left),
    ];
    let cells = |line: &Line| {
        let (word, emphasis) = match line.agrees {
            Some(true) => ("yes", Emphasis::Plain),
            Some(false) => ("NO", Emphasis::Bad),
            None => ("–", Emphasis::Faint),
        };
        let seen = if line.reason.is_empty() { &line.seen } else { &line.reason };
        vec![line.name.clone().into(), Cell::new(word, emphasis), seen.clone().into()]
    };
    let agree = lines.iter().filter(|line| line.agrees == Some(true)).count();
    let lead = format!("{agree} of {} experiments agree with what they state.", lines.len());
    terminal::text(&[Block::Table(by_theme(lines, columns, cells)), Block::Lead(lead)], style)
}

fn by_theme(lines: &[Line], columns: Vec<Column>, cells: impl Fn(&Line) -> Vec<Cell>) -> Table {
    let mut headings: Vec<Heading> = Vec::new();
    let mut rows = Vec::new();
    for line in lines {
        if headings.last().is_none_or(|last| last.text != line.theme) {
            headings.push(Heading { text: line.theme.clone(), series: None });
        }
        rows.push(Row { heading: Some(headings.len() - 1), cells: cells(line), ..Row::default() });
    }
    Table { columns, headings, rows, bars: None }
}
