//! One survey as a table (`--once`).

use weir_model::top::{ProcessActivity, Survey};

use super::labels::{age, calls, location, pending, pid, processes, share, size, tiny, totals, unread};
use super::order::{Selection, Sort};
use crate::block::Block;
use crate::number::whole_percent;
use crate::style::Emphasis;
use crate::table::{Align, Column, ColumnPriority, Table, TableCell, TableRow};

/// Tiny calls per second that are emphasised: about 0.1 % of one CPU.
const MUCH: f64 = 1000.0;

/// Returns a table of the first `rows` processes that made calls, used CPU time or have pending bytes.
pub fn blocks(survey: &Survey, selection: &Selection, rows: usize) -> Vec<Block> {
    let chosen = selection.select(survey);
    let shown: Vec<&ProcessActivity> =
        chosen.iter().copied().filter(|one| selection.named || is_worth_a_line(one)).take(rows).collect();
    let mut blocks = vec![Block::Title(format!("top · {} · {}", processes(chosen.len()), totals(&chosen)))];
    if !shown.is_empty() {
        let rows = shown.iter().map(|one| row(one)).collect();
        blocks.push(Block::Table(Table { columns: columns(selection.sort), rows, ..Table::default() }));
    }
    let rest = chosen.len() - shown.len();
    blocks.extend((rest > 0).then(|| Block::Aside(format!("and {rest} more with fewer calls or none"))));
    blocks.extend(unread(&chosen, survey).map(Block::Aside));
    blocks.push(Block::Facts(facts(survey, &shown)));
    blocks
}

fn is_worth_a_line(one: &ProcessActivity) -> bool {
    let calls = one.calls().is_some_and(|rate| rate.calls_s > 0.0);
    let runs = [one.user_share, one.system_share].into_iter().flatten().any(|share| share > 0.0);
    calls || runs || one.pending_bytes() > 0 || one.unanswered
}

/// Returns the columns. The column that the rows are sorted by is always shown.
fn columns(sort: Sort) -> Vec<Column> {
    let ranked = |head: &str, align, rank, own: &[Sort]| {
        let priority = if own.contains(&sort) { ColumnPriority::Always } else { ColumnPriority::Rank(rank) };
        Column::new(head, "", align).priority(priority)
    };
    vec![
        Column::new("pid", "", Align::Right),
        Column::new("command", "", Align::Left),
        ranked("tiny/s", Align::Right, 3, &[Sort::Tiny]),
        ranked("reads/s", Align::Right, 4, &[Sort::Reads]),
        ranked("writes/s", Align::Right, 4, &[Sort::Writes]),
        ranked("a read", Align::Right, 7, &[]),
        ranked("a write", Align::Right, 7, &[]),
        ranked("a call", Align::Right, 2, &[]),
        ranked("system %", Align::Decimal, 5, &[Sort::System]),
        ranked("user %", Align::Decimal, 6, &[]),
        Column::new("pending", "", Align::Right),
        ranked("age", Align::Right, 1, &[]),
        Column::new("where", "", Align::Path),
    ]
}

fn row(one: &ProcessActivity) -> TableRow {
    let (number, mark) = pid(one);
    let much = if one.tiny_calls_s() >= MUCH { Emphasis::Strong } else { Emphasis::Plain };
    let cells = vec![
        TableCell::from(number).marked(mark),
        one.comm.to_string().into(),
        TableCell::new(tiny(one), much),
        TableCell::new(calls(one.reads), much),
        TableCell::new(calls(one.writes), much),
        size(one.reads).into(),
        size(one.writes).into(),
        TableCell::new(size(one.calls()), much),
        share(one.system_share).into(),
        share(one.user_share).into(),
        pending(one).into(),
        age(one).into(),
        location(one).into(),
    ];
    TableRow { cells, ..TableRow::default() }
}

fn facts(survey: &Survey, shown: &[&ProcessActivity]) -> Vec<String> {
    let cost = if survey.elapsed_s > 0.0 { survey.cost_s / survey.elapsed_s } else { 0.0 };
    let mut facts = vec![
        format!("over {:.1} s", survey.elapsed_s),
        format!("weir used {} % of one CPU", whole_percent(cost)),
        "tiny: less than 512 B a call".to_string(),
    ];
    if shown.iter().any(|one| one.more_capable) {
        facts.push("! it has a capability that weir lacks, so its calls and buffers cannot be read".into());
    }
    if shown.iter().any(|one| one.foreign && !one.more_capable) {
        facts.push("! another user's, or more privileged than weir: root with CAP_SYS_PTRACE sees its calls and buffers".into());
    }
    facts
}
