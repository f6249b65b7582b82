//! What `weir run` will do about each wish, said before the command runs; and as JSON, with what came of it.

#[cfg(test)]
mod tests;

use weir_model::run::{Effect, PlanRow, RunPlan, Technique};

use crate::block::Block;
use crate::style::Style;
use crate::terminal;

/// The plan as text that ends with a newline.
pub fn screen(plan: &RunPlan, style: &Style) -> String {
    terminal::text(&blocks(plan), style)
}

fn blocks(plan: &RunPlan) -> Vec<Block> {
    let mut blocks = vec![Block::Title(title(plan))];
    blocks.extend(plan.rows.iter().map(answer));
    if plan.rows.is_empty() {
        blocks.push(Block::Text("Nothing is asked for: the command runs as it is.".into()));
    }
    blocks
}

/// The command, what runs it, and what of its file decides.
fn title(plan: &RunPlan) -> String {
    let program = &plan.program;
    let flags = [
        (program.script, "a script"),
        (program.linked_statically, "linked statically"),
        (program.musl, "musl"),
        (program.foreign, "another architecture"),
        (program.privileged, "another user's rights"),
    ];
    let flags = flags.into_iter().filter(|(is, _)| *is).map(|(_, words)| words.to_string());
    let head = [plan.command.join(" "), program.runtime.clone()];
    head.into_iter().chain(flags).collect::<Vec<_>>().join(" · ")
}

fn answer(row: &PlanRow) -> Block {
    let by = match row.technique {
        Technique::Nothing => "",
        Technique::Library => ", by the library",
        Technique::Outside => ", from outside",
        Technique::Environment => ", by environment",
        Technique::Option => ", by option",
        Technique::Terminal => ", by terminal",
    };
    let effect = match row.effect {
        Effect::Whole => "done",
        Effect::StandIn => "something else stands in",
        Effect::Part => "done in part",
        Effect::Already => "so already",
        Effect::Not => "cannot be done",
    };
    Block::Answer { question: row.option.clone(), answer: format!("{effect}{by}: {}.", row.text) }
}
