//! `weir advise --explain`: entries of docs/glossary.md.

use weir_bench::error::suggestion;
use weir_report::Style;
use weir_report::text::{clean, wrap};

const GLOSSARY: &str = include_str!("../../../../docs/glossary.md");

/// A row of the glossary.
struct GlossaryEntry {
    terms: Vec<String>,
    meaning: String,
    see: String,
}

/// Returns the entry of a term as text. Fails with a sentence that suggests a similar term.
pub fn text(term: &str, style: &Style) -> Result<String, String> {
    let entries = entries();
    let wanted = normal(term);
    let found = entries.iter().find(|entry| entry.terms.iter().any(|term| normal(term) == wanted));
    let Some(entry) = found else {
        let all: Vec<&str> = entries.iter().flat_map(|entry| &entry.terms).map(String::as_str).collect();
        return Err(format!("the glossary has no '{term}'; {}", suggestion(&wanted, all.iter().copied())));
    };
    let mut lines = wrap(
        &clean(&format!("{}: {}.", entry.terms.join(", "), entry.meaning.trim_end_matches('.')), style),
        style.width,
        "",
        "  ",
    );
    if entry.see != "–" {
        lines.push(clean(&format!("  see {}{}", entry.see, manual(&entry.see)), style));
    }
    Ok(lines.join("\n") + "\n")
}

/// Returns the command that shows the first man page of a reference: `open(2), proc(5)` gives `: man 2 open`.
fn manual(see: &str) -> String {
    let page = see.split([',', ' ']).find_map(|word| {
        let (name, section) = word.strip_suffix(')')?.split_once('(')?;
        section.starts_with(|letter: char| letter.is_ascii_digit()).then(|| format!(": man {section} {name}"))
    });
    page.unwrap_or_default()
}

/// Returns a term without case, and without the section of a man page.
fn normal(term: &str) -> String {
    let term = term.trim().to_lowercase().replace(['`', '_'], " ").replace('-', " ");
    term.split('(').next().unwrap_or_default().trim().into()
}

fn entries() -> Vec<GlossaryEntry> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
        let [terms, meaning, see] = cells[..] else { return None };
        let is_head = terms == "term" || terms.starts_with("---");
        (!is_head).then(|| GlossaryEntry {
            terms: terms.split(", ").map(|term| term.replace('`', "")).collect(),
            meaning: without_links(meaning),
            see: without_links(see),
        })
    };
    GLOSSARY.lines().filter_map(row).collect()
}

/// Returns Markdown without links and marks: `[text](target)` becomes `text`.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((words, after)) =
            link.split_once("](").and_then(|(words, target)| Some((words, target.split_once(')')?.1)))
        else {
            break;
        };
        plain += before;
        plain += words;
        rest = after;
    }
    (plain + rest).replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_found_in_any_spelling() {
        let style = Style::default();
        for term in
            ["fsync", "FSYNC(2)", "o_dsync", "O_DSYNC", "page cache", "Page-Cache", "fd", "group commit"]
        {
            let text = text(term, &style).unwrap();
            assert!(text.len() > 30, "{term}: {text}");
        }
        assert!(text("fsync", &style).unwrap().contains("man 2 fsync"));
        assert!(text("knee", &style).unwrap().contains("bench.md") || text("knee", &style).is_ok());
    }

    #[test]
    fn an_unknown_term_gets_a_suggestion() {
        let error = text("fsnyc", &Style::default()).unwrap_err();
        assert!(error.contains("did you mean 'fsync'"), "{error}");
    }

    #[test]
    fn links_become_their_text() {
        assert_eq!(without_links("a [b](c.md#d) `e` [f"), "a b e [f");
    }
}
