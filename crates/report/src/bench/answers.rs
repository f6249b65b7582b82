//! The cost model and the answers of a group.

use weir_model::bench::BenchDocument;

use super::labels;
use super::section::Section;
use crate::block::Block;
use crate::text::list;

/// Returns the cost model in sentences.
pub(super) fn model(section: &Section) -> Vec<Block> {
    let mut sentences = Vec::new();
    if let Some(model) = &section.group.model {
        let prefix =
            section.group.model_method.as_ref().map_or(String::new(), |method| format!("{method}: "));
        sentences.push(format!("{prefix}{}.", labels::costs(model, section.group.model_ci95.as_ref())));
    }
    let passes = section.group.pass_ns.iter().filter(|(_, ns)| **ns > 0.0);
    let passes: Vec<String> = passes
        .map(|(method, ns)| pass(method, *ns, section.group.pass_ns_ci95.get(method).copied()))
        .collect();
    if !passes.is_empty() {
        sentences.push(format!("On top of that, in user space: {}.", list(&passes)));
    }
    sentences.into_iter().map(Block::Text).collect()
}

/// Returns the time of a method in user space for each record; for each byte if the method moves single bytes.
fn pass(method: &str, ns: f64, ci95: Option<[f64; 2]>) -> String {
    let thing = if method.starts_with("stdio-char") { "byte" } else { "record" };
    format!("{method} {} a {thing}", labels::price(ns, ci95))
}

fn answers_of(document: &BenchDocument, wanted: impl Fn(usize) -> bool) -> Vec<Block> {
    let answers = document.answers.iter().filter(|answer| wanted(answer.group));
    answers.map(|a| Block::Answer { question: a.question.clone(), answer: a.answer.clone() }).collect()
}

/// Returns the answers about a group.
pub(super) fn answers(document: &BenchDocument, group: usize) -> Vec<Block> {
    answers_of(document, |of| of == group)
}

/// Returns the answers about groups that the document lacks, so that no answer is lost.
pub(super) fn strays(document: &BenchDocument, groups: usize) -> Vec<Block> {
    answers_of(document, |of| of >= groups)
}
