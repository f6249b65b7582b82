//! `weir run` compared with stdbuf and unbuffer: for each program, wanted mode and sink, when the first line arrives.
//!
//! WEIR_MATRIX=SUBSTRING runs only the cells whose name contains it.

mod common;
#[path = "matrix/runner/mod.rs"]
mod runner;

use std::io::Write;

use common::{campaign, concurrent, disk_dir, skip};
use runner::set::{Cell, cells};
use runner::watch::run;
use runner::{Arrival, Tool};

/// Number of concurrent runs: a run mostly sleeps.
const CONCURRENT: usize = 12;
/// Number of repetitions, alone, of a cell in which weir is worse than a rival: a busy machine delays every tool.
const REPETITIONS: usize = 3;
const TOOLS: [Tool; 4] = [Tool::Bare, Tool::Stdbuf, Tool::Unbuffer, Tool::Weir];

/// Returns true if weir, the last of the row, does worse than a rival.
fn is_worse(row: &[Arrival]) -> bool {
    row[3] > row[1].min(row[2])
}

fn table(rows: &[(Cell, Vec<Arrival>)]) -> String {
    let width = rows.iter().map(|(cell, _)| cell.name().len()).max().unwrap_or(0);
    let mut text = format!("\n{:width$}  {:14}  {:14}  {:14}  weir\n", "", "bare", "stdbuf", "unbuffer");
    for (cell, row) in rows {
        let [bare, stdbuf, unbuffer, weir] = [0, 1, 2, 3].map(|at| row[at].word());
        let mark = if is_worse(row) { "  WORSE" } else { "" };
        text += &format!("{:width$}  {bare:14}  {stdbuf:14}  {unbuffer:14}  {weir}{mark}\n", cell.name());
    }
    text
}

#[test]
fn weir_is_in_no_cell_worse_than_stdbuf_or_unbuffer() {
    let dir = disk_dir();
    let chosen = std::env::var("WEIR_MATRIX").unwrap_or_default();
    let missing = |name: &str, tool: &str| skip(&format!("matrix {name}"), &format!("{tool} is not here"));
    let mut cells = cells(dir.path(), missing);
    cells.retain(|cell| cell.name().contains(&chosen));
    if chosen.is_empty() {
        campaign::choose("run matrix", &mut cells, |cell| {
            vec![cell.program.name.clone(), cell.mode_and_sink()]
        });
    }
    let runs: Vec<(&Cell, Tool)> = cells.iter().flat_map(|cell| TOOLS.map(|tool| (cell, tool))).collect();
    let results = concurrent::for_each(CONCURRENT, &runs, |(cell, tool)| run(cell, *tool));
    let mut rows: Vec<(Cell, Vec<Arrival>)> =
        cells.iter().cloned().zip(results.chunks(TOOLS.len()).map(<[Arrival]>::to_vec)).collect();
    for (cell, row) in &mut rows {
        for _ in 0..REPETITIONS {
            if is_worse(row) {
                row[3] = run(cell, Tool::Weir);
            }
        }
    }
    let count = |of: usize, result: Arrival| rows.iter().filter(|(_, row)| row[of] == result).count();
    let line = |name: &str, of: usize| {
        format!(
            "run matrix: {name}: {} timely, {} late, {} lost, {} do not start, of {}\n",
            count(of, Arrival::Timely),
            count(of, Arrival::Late),
            count(of, Arrival::Lost),
            count(of, Arrival::DoesNotStart),
            rows.len()
        )
    };
    let text = table(&rows) + &line("stdbuf", 1) + &line("unbuffer", 2) + &line("weir", 3);
    // println! is captured by the test harness, and shown for failed tests only.
    std::io::stdout().write_all(text.as_bytes()).expect("standard output");
    let bad: Vec<String> =
        rows.iter().filter(|(_, row)| is_worse(row)).map(|(cell, _)| cell.name()).collect();
    assert!(bad.is_empty(), "weir does worse than stdbuf or unbuffer: {bad:#?}");
    let least = if campaign::is_quick() { 25 } else { 60 };
    assert!(!chosen.is_empty() || rows.len() >= least, "only {} cells could run here", rows.len());
}
