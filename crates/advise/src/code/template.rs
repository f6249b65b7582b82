//! Fills a template: leaves out the lines of other policies, and puts values in.
//!
//! A line `%if WORD|WORD` begins lines for policies with one of the words, `%else` those for the others, `%end` ends them.
//! Such blocks can be nested.

use std::collections::BTreeSet;

/// Returns the text of `template` for these words and values. Panics on a template that is not well formed; the tests fill
/// every template.
pub fn fill(template: &str, words: &BTreeSet<&str>, values: &[(&str, String)]) -> String {
    let mut text = String::new();
    let mut shown = vec![true];
    // Python has two blank lines between definitions.
    let blanks = if template.contains("\n\n\n") { 2 } else { 1 };
    for line in template.lines() {
        let mut parts = line.split_whitespace();
        match (parts.next(), parts.next()) {
            (Some("%if"), Some(test)) => {
                let holds = test.split('|').any(|word| words.contains(word));
                shown.push(holds);
            }
            (Some("%else"), None) => {
                assert!(shown.len() > 1, "%else without %if");
                let last = shown.last_mut().expect("the lines of an %if");
                *last = !*last;
            }
            (Some("%end"), None) => {
                shown.pop();
            }
            _ if shown.iter().all(|shown| *shown) && !repeats_blank(&text, line, blanks) => {
                text += line;
                text.push('\n');
            }
            _ => {}
        }
    }
    assert_eq!(shown.len(), 1, "every %if has an %end");
    values.iter().fold(text, |text, (name, value)| text.replace(name, value))
}

/// Returns whether a blank line would follow another one, because the lines between them are left out. `blanks` is the most
/// that may follow each other.
fn repeats_blank(text: &str, line: &str, blanks: usize) -> bool {
    let full = "\n".repeat(blanks + 1);
    line.is_empty() && (text.is_empty() || text.ends_with(&full) || text.ends_with("{\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_other_ways_are_left_out() {
        let template = "a\n%if x|y\nb @V@\n%if z\nc\n%else\nd\n%end\n%end\n\n%if z\n\n%end\n\ne\n";
        let fill =
            |words: &[&str]| fill(template, &words.iter().copied().collect(), &[("@V@", "1".to_string())]);
        assert_eq!(fill(&[]), "a\n\ne\n");
        assert_eq!(fill(&["y"]), "a\nb 1\nd\n\ne\n");
        assert_eq!(fill(&["x", "z"]), "a\nb 1\nc\n\ne\n");
    }

    #[test]
    #[should_panic(expected = "%else without %if")]
    fn an_else_without_an_if_is_refused() {
        fill("a\n%else\nb\n", &BTreeSet::new(), &[]);
    }
}
