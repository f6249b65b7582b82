//! Prints a made-up result: `screen [textbook|everything|compare] [WIDTH] [colour] [ascii] [md]`.

#[path = "../src/bench/fixture/mod.rs"]
#[allow(missing_docs)]
mod fixture;

use weir_report::{Style, bench};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|given| given == word);
    let width = words.iter().find_map(|word| word.parse().ok()).unwrap_or(80);
    let style = Style { colour: has("colour"), unicode: !has("ascii"), width, ..Style::default() };
    let document = if has("everything") { fixture::everything() } else { fixture::textbook() };
    let comparison =
        weir_model::bench::compare::compare(["before.json", "after.json"], &fixture::textbook(), &document);
    let text = match (has("compare"), has("md")) {
        (true, false) => bench::screen_compare(&comparison, &style),
        (true, true) => bench::markdown_compare(&comparison),
        (false, true) => bench::markdown(&document),
        (false, false) => bench::screen(&document, &style),
    };
    print!("{text}");
}
