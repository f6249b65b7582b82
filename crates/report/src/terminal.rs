//! A report as text for a terminal.

use weir_model::Severity;

use crate::block::{Block, FindingBlock, belongs_to, is_command};
use crate::style::{Emphasis, Style};
use crate::text::{clean, wrap, wrap_command, wrap_parts};

/// Indentation of everything except titles, in columns.
pub(crate) const INDENT: usize = 2;

/// Returns `blocks` as text that ends with a newline.
pub fn text(blocks: &[Block], style: &Style) -> String {
    let mut text = String::new();
    let mut previous: Option<&Block> = None;
    for block in blocks {
        let lines = lines(block, style);
        if lines.is_empty() {
            continue;
        }
        if previous.is_some_and(|previous| !belongs_to(previous, block)) {
            text.push('\n');
        }
        for line in lines {
            text += line.trim_end();
            text.push('\n');
        }
        previous = Some(block);
    }
    text
}

fn lines(block: &Block, style: &Style) -> Vec<String> {
    let say = |emphasis, text: &str, first: &str, rest: &str| -> Vec<String> {
        let lines = wrap(&clean(text, style), style.width, first, rest);
        lines.into_iter().map(|line| style.paint(emphasis, &line)).collect()
    };
    match block {
        Block::Title(text) => say(Emphasis::Strong, text, "", "  "),
        Block::Lead(text) => say(Emphasis::Strong, text, "  ", "  "),
        Block::Verdict(sentences) => {
            let (first, rest) = ("weir: ", "      ");
            let line = |(at, text): (usize, &String)| {
                if is_command(text) {
                    let lines = wrap_command(&clean(text, style), style.width, rest, "          ");
                    return lines.iter().map(|line| style.paint(Emphasis::Strong, line)).collect();
                }
                say(Emphasis::Strong, text, if at == 0 { first } else { rest }, rest)
            };
            sentences.iter().enumerate().flat_map(line).collect()
        }
        Block::Text(text) => say(Emphasis::Plain, text, "  ", "    "),
        Block::Aside(text) => say(Emphasis::Faint, text, "  ", "    "),
        Block::Facts(facts) => self::facts(facts, style),
        Block::Warning(text) => say(Emphasis::Bad, text, "  ! ", "    "),
        Block::Missing { what, why } => {
            say(Emphasis::Faint, &format!("{what}: {why}"), &format!("  {} ", style.sign("–", "-")), "    ")
        }
        Block::Answer { question, answer } => self::answer(question, answer, style),
        Block::Finding(finding) => self::finding(finding, style),
        Block::Table(table) => table.lines(INDENT, style),
        Block::Plot(plot) => plot.lines(INDENT, style),
        Block::Picture(lines) => lines.iter().map(|line| format!("  {}", clean(line, style))).collect(),
    }
}

fn facts(facts: &[String], style: &Style) -> Vec<String> {
    let facts: Vec<String> = facts.iter().map(|fact| clean(fact, style)).collect();
    let lines = wrap_parts(&facts, style.sign("·", "|"), style.width, "  ", "  ");
    lines.into_iter().map(|line| style.paint(Emphasis::Faint, &line)).collect()
}

/// Returns the question in bold and its answer as one paragraph.
fn answer(question: &str, answer: &str, style: &Style) -> Vec<String> {
    let (question, answer) = (clean(question, style), clean(answer, style));
    let words = question.split_whitespace().count();
    let mut left = words;
    let mut lines = wrap(&format!("{question} {answer}"), style.width, "  ", "    ");
    for line in &mut lines {
        let of_question = line.split_whitespace().count().min(left);
        left -= of_question;
        let end = end_of_word(line, of_question);
        *line = style.paint(Emphasis::Strong, &line[..end]) + &line[end..];
    }
    lines
}

/// Returns the head with its level in colour, then each fact beside its label.
fn finding(finding: &FindingBlock, style: &Style) -> Vec<String> {
    let emphasis = match finding.severity {
        Severity::High => Emphasis::Bad,
        Severity::Warn => Emphasis::Series(1),
        Severity::Info => Emphasis::Faint,
    };
    let (level, name) = (finding.level(), clean(&finding.name, style));
    let stream = clean(&finding.stream, style);
    let mut head = wrap(&format!("{level} {name} {stream}"), style.width - 2, "  ", "        ");
    if let Some(rest) = head[0].strip_prefix(&format!("  {level} {name}")) {
        let (level, name) = (style.paint(emphasis, level), style.paint(Emphasis::Strong, &name));
        head[0] = format!("  {level}  {name} {rest}");
    }
    head.extend(
        finding
            .facts
            .iter()
            .flat_map(|(name, text)| fact(name, text, finding.is_verbatim(name, text), style)),
    );
    head
}

/// Returns one fact: sentences are wrapped, commands and code are not.
fn fact(name: &str, text: &str, verbatim: bool, style: &Style) -> Vec<String> {
    const NAME: usize = 6;
    let rest = " ".repeat(8 + NAME);
    let lines: Vec<String> = match verbatim {
        true if name == "run" => {
            let more = format!("{rest}    ");
            text.lines()
                .flat_map(|line| wrap_command(&clean(line, style), style.width, &rest, &more))
                .collect()
        }
        true => text.lines().map(|line| format!("{rest}{}", clean(line, style))).collect(),
        false => wrap(&clean(text, style), style.width, &rest, &rest),
    };
    let name = format!(
        "        {}{}",
        style.paint(Emphasis::Faint, name),
        " ".repeat(NAME.saturating_sub(name.len()))
    );
    let named = lines.iter().enumerate().map(|(at, line)| match at {
        0 => format!("{name}{}", &line[rest.len()..]),
        _ => line.clone(),
    });
    named.collect()
}

/// Returns the byte offset of the end of word number `words` of `line`.
fn end_of_word(line: &str, words: usize) -> usize {
    let word = line.split_whitespace().take(words).last();
    word.map_or(0, |word| word.as_ptr() as usize - line.as_ptr() as usize + word.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(width: usize, colour: bool) -> Style {
        Style { colour, width, ..Style::default() }
    }

    #[test]
    fn a_long_command_of_the_verdict_can_be_pasted() {
        let command = "cd '/tmp/x y' && weir run --max-delay 100ms -- ./program 'two  blanks' and more words";
        let shown = text(&[Block::Verdict(vec!["It hangs.".into(), command.into()])], &at(40, false));
        let pasted = shown.lines().skip(1).map(|line| line.trim().trim_end_matches('\\')).collect::<String>();
        assert_eq!(pasted, command, "{shown}");
    }

    #[test]
    fn unrelated_blocks_are_separated_by_a_blank_line() {
        let blocks = [
            Block::Title("title".into()),
            Block::Aside("aside".into()),
            Block::Lead("lead".into()),
            Block::Text("one".into()),
            Block::Text("two".into()),
            Block::Warning("careful".into()),
        ];
        assert_eq!(
            text(&blocks, &at(80, false)),
            "title\n  aside\n\n  lead\n\n  one\n  two\n\n  ! careful\n"
        );
    }

    #[test]
    fn the_question_is_bold_and_runs_into_the_answer() {
        let block = [Block::Answer { question: "Where do gains stop?".into(), answer: "At 16 KiB.".into() }];
        assert_eq!(text(&block, &at(80, false)), "  Where do gains stop? At 16 KiB.\n");
        assert_eq!(text(&block, &at(16, false)), "  Where do gains\n    stop? At\n    16 KiB.\n");
        assert_eq!(
            text(&block, &at(16, true)),
            "  \u{1b}[1mWhere do gains\u{1b}[0m\n    \u{1b}[1mstop?\u{1b}[0m At\n    16 KiB.\n"
        );
    }

    #[test]
    fn a_missing_row_has_a_reason() {
        let block = [Block::Missing { what: "splice 1 B".into(), why: "needs a pipe".into() }];
        assert_eq!(text(&block, &at(80, false)), "  – splice 1 B: needs a pipe\n");
    }
}
