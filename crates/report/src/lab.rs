//! The screens of `weir lab`: the list, one experiment, the summary of all.

mod beside;
mod boxes;
mod frames;
mod map;
mod outcomes;
mod page;
pub mod step;

use weir_model::duration::format_seconds;
use weir_model::lab::{LabLine, LabPage, LabVerdict, PreviousRun, PublishedTable};

pub use page::{document_page, page_title};

use crate::block::Block;
use crate::style::{Emphasis, Style};
use crate::table::{Align, Column, Heading, Table, TableCell, TableRow};
use crate::terminal;
use crate::text::{clean, width, wrap};

/// Mark of a quick run in the list.
const QUICK: &str = "*";
/// The spaces before and between the columns of a list.
const GAPS: usize = 6;
/// Narrowest column for descriptions in the list.
const SHORTEST_TEXT: usize = 20;

/// Returns one experiment as text for a terminal.
pub fn page(page: &LabPage, style: &Style) -> String {
    let mut blocks = vec![Block::Title(format!("{} · {}", page.name, page.theme))];
    blocks.push(Block::Answer { question: "You would expect:".into(), answer: page.expect.clone() });
    if !page.outcomes.is_empty() {
        let (table, meaning) = outcomes::table(&page.outcomes);
        blocks.push(Block::Table(outcomes::wrapped(table, style)));
        blocks.extend(meaning.map(Block::Aside));
    }
    if !page.picture.is_empty() {
        blocks.push(Block::Picture(page.picture.clone()));
    }
    blocks.extend(warning(&page.verdict).map(Block::Warning));
    blocks.push(Block::Answer { question: "Why:".into(), answer: page.why.clone() });
    if !page.fix.is_empty() {
        blocks.push(Block::Answer { question: "Fix:".into(), answer: page.fix.clone() });
    }
    let took = format!("took {}", format_seconds(page.elapsed.as_secs_f64()));
    blocks.push(Block::Facts(page.commands.iter().cloned().chain([took]).collect()));
    blocks.extend(more(page).map(Block::Aside));
    blocks.extend(page.tables.iter().flat_map(|table| beside::blocks(table, false, Some(style))));
    terminal::text(&blocks, style)
}

/// Returns the command that shows more of the experiment, if there is one.
fn more(page: &LabPage) -> Option<String> {
    let (last, others) = page.options.split_last()?;
    let listed = if others.is_empty() { String::new() } else { format!("{} or ", others.join(", ")) };
    Some(format!("more: weir lab {} with {listed}{last}", page.name))
}

/// Returns the difference to the statement, or the reason why the experiment did not run.
fn warning(verdict: &LabVerdict) -> Option<String> {
    match verdict {
        LabVerdict::Agrees => None,
        LabVerdict::Differs(reason) => Some(format!("not as the experiment states: {reason}")),
        LabVerdict::Absent(reason) => Some(format!("not run: {reason}")),
    }
}

/// Returns the list by theme with the last results; `now_s` is the time in seconds since 1970.
pub fn list(lines: &[LabLine], now_s: u64, style: &Style) -> String {
    const AGREED: &str = "agreed";
    let widest = |texts: &[&str]| texts.iter().map(|text| width(text)).max().unwrap_or(0);
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).chain(["experiment"]).collect();
    let ran = lines.iter().any(|line| line.previous.is_some());
    let agreed = if ran { width(AGREED) + GAPS / 3 } else { 0 };
    let room = style.width.saturating_sub(widest(&names) + GAPS + agreed).max(SHORTEST_TEXT);
    let mut columns =
        vec![Column::new("experiment", "", Align::Left), Column::new("what happens", "", Align::Left)];
    if ran {
        columns.insert(1, Column::new(AGREED, "", Align::Left));
    }
    let rows = |line: &LabLine| {
        let mut first = vec![line.name.clone().into()];
        first.extend(ran.then(|| line.previous.as_ref().map_or_else(TableCell::default, last_run)));
        wrapped(&first, &line.about, room, style)
    };
    let hint =
        "weir lab NAME runs one; with --step you go through it call by call; weir lab all --quick runs all";
    let mut blocks = vec![Block::Table(by_theme(lines, columns, rows))];
    blocks.extend(ran.then(|| Block::Facts(previous_runs(lines, now_s))));
    blocks.push(Block::Aside(hint.into()));
    terminal::text(&blocks, style)
}

/// Returns the rows of a line of a list. The text in the last column is wrapped at `room` characters.
fn wrapped(first: &[TableCell], text: &str, room: usize, style: &Style) -> Vec<Vec<TableCell>> {
    let rest = vec![TableCell::default(); first.len()];
    let rows = std::iter::once(first).chain(std::iter::repeat(rest.as_slice()));
    let texts = wrap(&clean(text, style), room, "", "");
    rows.zip(texts).map(|(cells, text)| [cells, &[text.into()]].concat()).collect()
}

/// Returns how old the previous runs are and what their marks mean.
fn previous_runs(lines: &[LabLine], now_s: u64) -> Vec<String> {
    let runs = || lines.iter().filter_map(|line| line.previous.as_ref());
    let ages = || runs().map(|run| run.age_s(now_s));
    let (newest, oldest) = (ago(ages().min().unwrap_or(0)), ago(ages().max().unwrap_or(0)));
    let span = if newest == oldest { newest } else { format!("{newest} to {oldest}") };
    let mut facts = vec![format!("agreed: result of the last run on this machine, {span}")];
    if runs().any(|run| run.quick) {
        facts.push(format!("{QUICK} a quick run"));
    }
    facts
}

/// Returns the published tables, then a table with the outcomes of all experiments.
pub fn summary(lines: &[LabLine], tables: &[&PublishedTable], style: &Style) -> String {
    let columns = vec![
        Column::new("experiment", "", Align::Left),
        Column::new("agrees", "", Align::Left),
        Column::new("seen", "", Align::Left),
    ];
    let names = lines.iter().map(|line| width(&line.name)).chain([width(&columns[0].head)]).max();
    let room = style.width.saturating_sub(names.unwrap_or(0) + width("agrees") + GAPS + 2).max(SHORTEST_TEXT);
    let cells = |line: &LabLine| {
        let (word, emphasis) = agreed(line.agrees);
        let text = match line.reason.is_empty() {
            true => first_items(&line.seen, room),
            false => line.reason.clone(),
        };
        wrapped(&[line.name.clone().into(), TableCell::new(word, emphasis)], &text, room, style)
    };
    let mut blocks: Vec<Block> =
        tables.iter().flat_map(|table| beside::blocks(table, true, Some(style))).collect();
    let lead = agreement(lines.iter().map(|line| (line.agrees, line.name.as_str())));
    blocks.extend([Block::Table(by_theme(lines, columns, cells)), Block::Lead(lead)]);
    terminal::text(&blocks, style)
}

/// Returns how many experiments agree with what they state, and the names of those that do not or could not run.
fn agreement<'a>(experiments: impl Iterator<Item = (Option<bool>, &'a str)> + Clone) -> String {
    let names = |wanted: Option<bool>| -> Vec<&str> {
        experiments.clone().filter(|one| one.0 == wanted).map(|one| one.1).collect()
    };
    let [agree, differ, absent] = [Some(true), Some(false), None].map(names);
    let verb = |names: &[&str], one: &'static str, several| if names.len() == 1 { one } else { several };
    let count = agree.len();
    let mut text = format!(
        "{count} {} with what {}",
        verb(&agree, "experiment agrees", "experiments agree"),
        verb(&agree, "it states", "they state")
    );
    if !differ.is_empty() {
        text += &format!("; {} {} not ({})", differ.len(), verb(&differ, "does", "do"), differ.join(", "));
    }
    if !absent.is_empty() {
        text += &format!("; {} could not run here ({})", absent.len(), absent.join(", "));
    }
    text + "."
}

/// Returns as many of the items, which `; ` separates, as fit in `room` columns; at least the first.
fn first_items(items: &str, room: usize) -> String {
    const MORE: &str = "; …";
    if width(items) <= room {
        return items.into();
    }
    let ends = items.match_indices("; ").map(|(at, _)| &items[..at]);
    let fits = |text: &&str| width(text) + width(MORE) <= room;
    match ends.clone().take_while(fits).last().or_else(|| ends.clone().next()) {
        Some(text) => format!("{text}{MORE}"),
        None => items.into(),
    }
}

/// Returns the cell for a previous run: `yes` or `NO`, marked if it was a quick run.
fn last_run(run: &PreviousRun) -> TableCell {
    let (word, emphasis) = agreed(run.agrees);
    TableCell::new(word, emphasis).marked(if run.quick { QUICK } else { "" })
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

/// Returns a table under the headings of the themes. `rows` returns the cells of each row of a line.
fn by_theme(
    lines: &[LabLine],
    columns: Vec<Column>,
    rows_of: impl Fn(&LabLine) -> Vec<Vec<TableCell>>,
) -> Table {
    let mut headings: Vec<Heading> = Vec::new();
    let mut rows = Vec::new();
    for line in lines {
        if headings.last().is_none_or(|last| last.text != line.theme) {
            headings.push(Heading { text: line.theme.clone(), series: None });
        }
        let heading = Some(headings.len() - 1);
        rows.extend(rows_of(line).into_iter().map(|cells| TableRow {
            heading,
            cells,
            ..TableRow::default()
        }));
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
    fn whole_items_are_shown() {
        assert_eq!(first_items("reads: 5; writes: 7", 19), "reads: 5; writes: 7");
        assert_eq!(first_items("reads: 5; writes: 7; syncs: 1", 24), "reads: 5; writes: 7; …");
        assert_eq!(first_items("reads: 5; writes: 7; syncs: 1", 21), "reads: 5; …");
        assert_eq!(first_items("reads of many files: 5; writes: 7", 12), "reads of many files: 5; …");
        assert_eq!(first_items("reads of many files: 5", 12), "reads of many files: 5");
    }

    #[test]
    fn experiments_that_differ_are_not_those_that_could_not_run() {
        let of = |experiments: &[(Option<bool>, &str)]| agreement(experiments.iter().copied());
        let (yes, no, absent) = (Some(true), Some(false), None);
        assert_eq!(
            of(&[(yes, "tail"), (yes, "dots"), (absent, "gpio-read")]),
            "2 experiments agree with what they state; 1 could not run here (gpio-read)."
        );
        assert_eq!(
            of(&[(yes, "tail"), (no, "dots"), (no, "advice")]),
            "1 experiment agrees with what it states; 2 do not (dots, advice)."
        );
    }

    #[test]
    fn the_last_option_follows_or() {
        let with = |options: &[&'static str]| more(&LabPage { options: options.to_vec(), ..page_of("tail") });
        assert_eq!(with(&[]), None);
        assert_eq!(with(&["--predict"]).as_deref(), Some("more: weir lab tail with --predict"));
        assert_eq!(
            with(&["--step", "--source", "--fixed"]).as_deref(),
            Some("more: weir lab tail with --step, --source or --fixed")
        );
    }

    fn page_of(name: &str) -> LabPage {
        LabPage {
            name: name.into(),
            theme: String::new(),
            expect: String::new(),
            why: String::new(),
            fix: String::new(),
            verdict: LabVerdict::Agrees,
            outcomes: Vec::new(),
            picture: Vec::new(),
            tables: Vec::new(),
            commands: Vec::new(),
            options: Vec::new(),
            elapsed: std::time::Duration::ZERO,
        }
    }

    #[test]
    fn the_summary_cuts_no_word() {
        let line = LabLine {
            name: "tail".into(),
            seen: "words of the program: 12; ".repeat(9),
            ..LabLine::default()
        };
        let reason = LabLine { reason: "words ".repeat(30), name: "dots".into(), ..LabLine::default() };
        let text = summary(&[line, reason], &[], &Style::default());
        assert!(text.contains("words of the program: 12; words of the program: 12; …\n"), "{text}");
        assert_eq!(text.matches("words ").count() + text.matches("words\n").count(), 32, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn the_list_shows_previous_runs() {
        let line = |name: &str, previous| LabLine {
            name: name.into(),
            about: "words of ".repeat(12),
            previous,
            ..LabLine::default()
        };
        let style = Style::default();
        assert!(!list(&[line("tail", None)], 1130, &style).contains("agreed"));
        let run = |agrees, quick| Some(PreviousRun { at_s: 1000, quick, agrees });
        let text =
            list(&[line("tail", run(Some(true), true)), line("dots", run(Some(false), false))], 1130, &style);
        let row = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_string();
        assert!(text.contains("agreed: result of the last run on this machine, 2 min ago"), "{text}");
        assert!(row("tail").contains(" yes* ") && row("dots").contains(" NO "), "{text}");
        assert_eq!(text.matches("words").count(), 24, "each word is whole: {text}");
        assert!(text.contains("* a quick run"), "{text}");
        let old = list(&[line("tail", run(Some(true), true))], 1000 + 3 * 86_400, &style);
        assert!(old.contains("this machine, 3 days ago"), "{old}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
