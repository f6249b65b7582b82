//! Blocks of a report as HTML.

use crate::block::{Block, FindingBlock, is_command};
use crate::style::Emphasis;
use crate::svg::{escape, series_class};
use crate::table::{Align, Table, TableCell, TableRow};

/// Returns blocks as HTML. Plots and pictures of characters are for terminals; a page has drawings in their place.
pub(super) fn html(blocks: &[Block]) -> String {
    let mut html = String::new();
    let mut at = 0;
    while at < blocks.len() {
        let run = blocks[at..].iter().take_while(|block| same_list(block, &blocks[at])).count().max(1);
        html += &piece(&blocks[at..at + run]);
        at += run;
    }
    html
}

/// Returns whether two blocks are items of one list.
fn same_list(a: &Block, b: &Block) -> bool {
    matches!(
        (a, b),
        (Block::Answer { .. }, Block::Answer { .. }) | (Block::Missing { .. }, Block::Missing { .. })
    )
}

fn piece(run: &[Block]) -> String {
    match &run[0] {
        Block::Title(text) => format!("<h3>{}</h3>\n", escape(text)),
        Block::Lead(text) => format!("<p class=\"lead\">{}</p>\n", escape(text)),
        Block::Verdict(sentences) => verdict(sentences),
        Block::Text(text) => format!("<p>{}</p>\n", escape(text)),
        Block::Aside(text) => format!("<p class=\"aside\">{}</p>\n", escape(text)),
        Block::Facts(facts) => format!("<p class=\"aside\">{}</p>\n", escape(&facts.join(" · "))),
        Block::Warning(text) => {
            format!("<p class=\"warning\"><strong>Doubt:</strong> {}</p>\n", escape(text))
        }
        Block::Answer { .. } => {
            format!("<dl class=\"answers\">\n{}</dl>\n", run.iter().map(answer).collect::<String>())
        }
        Block::Missing { .. } => {
            format!("<ul class=\"missing\">\n{}</ul>\n", run.iter().map(missing).collect::<String>())
        }
        Block::Finding(finding) => self::finding(finding),
        Block::Table(table) => self::table(table),
        Block::Picture(lines) => {
            format!("<pre class=\"drawn\" tabindex=\"0\">{}</pre>\n", escape(&lines.join("\n")))
        }
        Block::Plot(_) => String::new(),
    }
}

/// Returns the verdict: sentences as one paragraph, commands in boxes.
fn verdict(sentences: &[String]) -> String {
    let mut html = String::from("<div class=\"verdict\">\n");
    for line in sentences.iter().flat_map(|sentence| sentence.lines()) {
        html += &match is_command(line.trim_start()) {
            true => format!("<pre class=\"command\"><code>{}</code></pre>\n", escape(line.trim())),
            false => format!("<p>{}</p>\n", escape(line)),
        };
    }
    html + "</div>\n"
}

fn answer(block: &Block) -> String {
    let Block::Answer { question, answer } = block else { return String::new() };
    format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(question), escape(answer))
}

fn missing(block: &Block) -> String {
    let Block::Missing { what, why } = block else { return String::new() };
    format!("<li><span>{}</span>: {}</li>\n", escape(what), escape(why))
}

fn finding(finding: &FindingBlock) -> String {
    let level = finding.level();
    let class = level.to_lowercase();
    let mut html = format!(
        "<div class=\"finding {class}\"><h3><span class=\"level\">{level}</span> {}</h3>\n<p class=\"stream\">{}</p>\n<dl>",
        escape(&finding.name),
        escape(&finding.stream)
    );
    for (name, text) in &finding.facts {
        let code = matches!(*name, "run" | "code");
        let text = escape(text);
        let text = if code { format!("<pre><code>{text}</code></pre>") } else { text };
        html += &format!("<div><dt>{name}</dt><dd>{text}</dd></div>\n");
    }
    html + "</dl>" + &files(&finding.files) + "</div>\n"
}

/// Returns the other files of a finding in a closed part.
fn files(files: &[String]) -> String {
    if files.is_empty() {
        return String::new();
    }
    let items: String = files.iter().map(|file| format!("<li>{}</li>\n", escape(file))).collect();
    format!("<details><summary>The other files</summary>\n<ul>\n{items}</ul></details>")
}

fn table(table: &Table) -> String {
    let heads = table.columns.iter().map(|column| {
        let unit = match column.unit.as_str() {
            "" => String::new(),
            unit => format!(" <small>{}</small>", escape(unit)),
        };
        match column.head.is_empty() && unit.is_empty() {
            // A head without a text is no head for a screen reader.
            true => "<td></td>".into(),
            false => format!("<th scope=\"col\"{}>{}{unit}</th>", class(column.align), escape(&column.head)),
        }
    });
    let remarks = table.rows.iter().any(|row| !row.remarks.is_empty());
    let mut html = format!(
        "<div class=\"table\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table>\n<thead><tr>{}{}</tr></thead>\n<tbody>\n",
        heads.collect::<String>(),
        if remarks { "<th scope=\"col\">remark</th>" } else { "" }
    );
    let columns = table.columns.len() + usize::from(remarks);
    let mut heading = None;
    for row in &table.rows {
        if row.heading != heading {
            heading = row.heading;
            let text = heading.and_then(|at| table.headings.get(at)).map_or("", |one| one.text.as_str());
            html += &format!(
                "<tr class=\"heading\"><th colspan=\"{columns}\" scope=\"rowgroup\">{}</th></tr>\n",
                escape(text)
            );
        }
        html += &self::row(table, row, remarks);
    }
    html + "</tbody></table></div>\n"
}

fn row(table: &Table, row: &TableRow, remarks: bool) -> String {
    let cells = row.cells.iter().zip(&table.columns).map(|(cell, column)| self::cell(cell, column.align));
    let remark = match remarks {
        true => format!(
            "<td class=\"remark\">{}</td>",
            row.remarks.first().map_or(String::new(), |text| escape(text))
        ),
        false => String::new(),
    };
    let series = row.series.map_or(String::new(), |series| format!(" class=\"{}\"", series_class(series)));
    format!("<tr{series}>{}{remark}</tr>\n", cells.collect::<String>())
}

fn cell(cell: &TableCell, align: Align) -> String {
    let text = format!("{}{}", escape(&cell.text), escape(&cell.marks));
    let text = match cell.emphasis {
        Emphasis::Good => format!("<span class=\"good\">{text}</span>"),
        Emphasis::Bad => format!("<strong class=\"bad\">{text}</strong>"),
        Emphasis::Strong => format!("<strong>{text}</strong>"),
        _ => text,
    };
    format!("<td{}>{text}</td>", class(align))
}

fn class(align: Align) -> &'static str {
    match align {
        Align::Left => "",
        Align::Path => " class=\"path\"",
        Align::Right | Align::Decimal => " class=\"number\"",
    }
}
