//! A report as GitHub-flavoured Markdown.

use crate::block::{Block, FindingBlock, belongs_to};
use crate::style::Style;
use crate::table::{Align, Table, TableCell, TableRow};

/// Style of plots, which go into a code block: GitHub shows 80 columns of one on a laptop.
const CODE: Style = Style { colour: false, unicode: true, width: 80, rows: 24 };

/// Returns `blocks` as GitHub-flavoured Markdown that ends with a newline.
pub fn text(blocks: &[Block]) -> String {
    let mut text = String::new();
    let mut previous: Option<&Block> = None;
    for block in blocks {
        let piece = piece(block);
        if piece.is_empty() {
            continue;
        }
        let tight = previous
            .is_some_and(|previous| is_item(previous) && is_item(block) && belongs_to(previous, block));
        if previous.is_some() && !tight {
            text.push('\n');
        }
        text += &piece;
        text.push('\n');
        previous = Some(block);
    }
    text
}

fn is_item(block: &Block) -> bool {
    matches!(block, Block::Missing { .. } | Block::Answer { .. })
}

fn piece(block: &Block) -> String {
    match block {
        Block::Title(text) => format!("## {}", escape(text)),
        Block::Lead(text) => format!("**{}**", escape(text)),
        Block::Verdict(sentences) => format!("**{}**", escape(&sentences.join(" "))),
        Block::Text(text) => escape(text),
        Block::Aside(text) => format!("<sub>{}</sub>", escape(text)),
        Block::Facts(facts) => format!("<sub>{}</sub>", escape(&facts.join(" · "))),
        Block::Warning(text) => format!("> [!WARNING]\n> {}", escape(text)),
        Block::Missing { what, why } => format!("- {}: {}", escape(what), escape(why)),
        Block::Answer { question, answer } => format!("- **{}** {}", escape(question), escape(answer)),
        Block::Finding(finding) => self::finding(finding),
        Block::Table(table) => self::table(table),
        Block::Picture(lines) => format!("```text\n{}\n```", lines.join("\n")),
        Block::Plot(plot) => match plot.lines(0, &CODE) {
            lines if lines.is_empty() => String::new(),
            lines => format!("```text\n{}\n```", lines.join("\n")),
        },
    }
}

/// Returns a finding as a list item with its facts as nested items; commands and code go into code spans.
fn finding(finding: &FindingBlock) -> String {
    let mut lines =
        vec![format!("- **{}** {} {}", finding.level(), escape(&finding.name), escape(&finding.stream))];
    lines.extend(finding.facts.iter().map(|(name, text)| match finding.is_verbatim(name, text) {
        true => format!("  - {name}: `{}`", text.replace('`', "'").replace('\n', " ")),
        false => format!("  - {name}: {}", escape(text)),
    }));
    lines.join("\n")
}

/// Returns `text` on one line with every special character of Markdown and HTML escaped.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '|' | '[' | ']' | '#' | '~' => escaped.extend(['\\', letter]),
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            _ if letter.is_control() => escaped.push(' '),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// Returns a table with every column, also those that a terminal replaces by headings.
fn table(table: &Table) -> String {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let head = table.columns.iter().map(|column| match column.unit.as_str() {
        "" => escape(&column.head),
        unit => format!("{} ({})", escape(&column.head), escape(unit)),
    });
    let rule = table.columns.iter().map(|column| match column.align {
        Align::Left | Align::Path => ":---".into(),
        Align::Right | Align::Decimal => "---:".into(),
    });
    let mut lines = vec![line(head.collect()), line(rule.collect())];
    lines.extend(table.rows.iter().map(|row| line(cells(row))));
    lines.join("\n")
}

fn cells(row: &TableRow) -> Vec<String> {
    let text = |cell: &TableCell| escape(&format!("{}{}", cell.text, cell.marks));
    let mut cells: Vec<String> = row.cells.iter().map(text).collect();
    if let (Some(last), Some(remark)) = (cells.last_mut(), row.remarks.first()) {
        *last = format!("{last} {}", escape(remark)).trim_start().into();
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Column, ColumnPriority};

    #[test]
    fn a_table_with_units_and_alignment() {
        let table = Table {
            columns: vec![
                Column::new("method", "", Align::Left).priority(ColumnPriority::UnlessHeaded),
                Column::new("elapsed", "s", Align::Decimal),
            ],
            headings: vec![crate::table::Heading { text: "a".into(), series: None }],
            rows: vec![TableRow {
                heading: Some(0),
                cells: vec!["a|b".into(), TableCell::from("1.25").marked(" ~")],
                remarks: vec!["◀ knee: 1 B".into(), "◀".into()],
                ..TableRow::default()
            }],
            bars: None,
        };
        let expected = "| method | elapsed (s) |\n| :--- | ---: |\n| a\\|b | 1.25 \\~ ◀ knee: 1 B |\n";
        assert_eq!(text(&[Block::Table(table)]), expected);
    }

    #[test]
    fn markup_in_texts_is_escaped() {
        let blocks = [Block::Text("<b> & *x* _y_\n# z".into())];
        assert_eq!(text(&blocks), "&lt;b&gt; &amp; \\*x\\* \\_y\\_ \\# z\n");
    }

    #[test]
    fn answers_are_a_list() {
        let answer = |text: &str| Block::Answer { question: "Why?".into(), answer: text.into() };
        assert_eq!(text(&[answer("a"), answer("b")]), "- **Why?** a\n- **Why?** b\n");
    }
}
