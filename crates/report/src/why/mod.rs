//! What `weir run` will do about each wish, said before the command runs; and as JSON, with what came of it.

mod document;
#[cfg(test)]
mod tests;

pub use document::{Document, Ended, Program, Rescued, Row, SCHEMA, Saved, Why};

use crate::block::Block;
use crate::style::Style;
use crate::terminal;

/// The plan as text that ends with a newline.
pub fn screen(why: &Why, style: &Style) -> String {
    terminal::text(&blocks(why), style)
}

fn blocks(why: &Why) -> Vec<Block> {
    let mut blocks = vec![Block::Title(title(why))];
    blocks.extend(why.rows.iter().map(answer));
    if why.rows.is_empty() {
        blocks.push(Block::Text("Nothing is asked for: the command runs as it is.".into()));
    }
    blocks
}

/// The command, what runs it, and what of its file decides.
fn title(why: &Why) -> String {
    let program = &why.program;
    let flags = [
        (program.script, "a script"),
        (program.linked_statically, "linked statically"),
        (program.musl, "musl"),
        (program.foreign, "another architecture"),
        (program.privileged, "another user's rights"),
    ];
    let flags = flags.into_iter().filter(|(is, _)| *is).map(|(_, words)| words.to_string());
    let head = [why.command.join(" "), program.runtime.clone()];
    head.into_iter().chain(flags).collect::<Vec<_>>().join(" · ")
}

fn answer(row: &Row) -> Block {
    let by = match row.technique.as_str() {
        "nothing" => String::new(),
        "library" => ", by the library".into(),
        "outside" => ", from outside".into(),
        technique => format!(", by {technique}"),
    };
    let effect = match row.effect.as_str() {
        "whole" => "done",
        "stand-in" => "something else stands in",
        "part" => "done in part",
        "already" => "so already",
        _ => "cannot be done",
    };
    Block::Answer { question: row.wish.clone(), answer: format!("{effect}{by}: {}.", row.text) }
}
