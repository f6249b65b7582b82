//! The plan of `weir run --why`.

mod page;
#[cfg(test)]
mod tests;

use weir_model::run::{Effect, PlanRow, RunPlan, Technique};

pub use page::{page, page_title};

use crate::block::Block;
use crate::style::Style;
use crate::terminal;

/// Returns the plan as text that ends with a newline.
pub fn screen(plan: &RunPlan, style: &Style) -> String {
    terminal::text(&blocks(plan), style)
}

fn blocks(plan: &RunPlan) -> Vec<Block> {
    let mut blocks = vec![Block::Title(title(plan))];
    blocks.extend(plan.rows.iter().map(answer));
    if plan.rows.is_empty() {
        blocks.push(Block::Text("No option is given: the command runs unchanged.".into()));
    }
    blocks
}

/// Returns the command, its runtime and the properties of its file that limit what weir can do.
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
        Effect::StandIn => "a substitute is used",
        Effect::Part if row.technique == Technique::Nothing => "has no effect",
        Effect::Part => "done in part",
        Effect::Already => "not needed",
        Effect::Not => "cannot be honoured",
    };
    let unreached =
        row.unreached.as_ref().map_or(String::new(), |buffers| format!("; out of reach: {buffers}"));
    Block::Answer { question: row.option.clone(), answer: format!("{effect}{by}: {}{unreached}.", row.text) }
}
