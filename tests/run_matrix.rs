//! `weir run` beside stdbuf and unbuffer: program × wanted mode × sink, and what becomes of the first line.
//!
//! WEIR_MATRIX=SUBSTRING runs the cells whose name holds it.

mod common;
#[path = "matrix/runner/mod.rs"]
mod runner;

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::{campaign, disk_dir, skip};
use runner::set::{Cell, cells};
use runner::watch::run;
use runner::{Result, Tool};

/// Most of a run is sleep.
const AT_ONCE: usize = 12;
/// A busy machine makes anyone late: what is worse than a rival is run again, alone.
const AGAIN: usize = 3;
const TOOLS: [Tool; 4] = [Tool::Bare, Tool::Stdbuf, Tool::Unbuffer, Tool::Weir];

/// Runs every item, some at a time; the results keep the order.
fn all<T: Sync, R: Send>(items: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((at, item)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    items.get(at).map(|item| (at, item))
                } {
                    let result = of(item);
                    done.lock().expect("no run panics").push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no run panics");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Whether weir, the last, does worse than a rival.
fn worse(row: &[Result]) -> bool {
    row[3] > row[1].min(row[2])
}

fn table(rows: &[(Cell, Vec<Result>)]) -> String {
    let width = rows.iter().map(|(cell, _)| cell.name().len()).max().unwrap_or(0);
    let mut text = format!("\n{:width$}  {:14}  {:14}  {:14}  weir\n", "", "bare", "stdbuf", "unbuffer");
    for (cell, row) in rows {
        let [bare, stdbuf, unbuffer, weir] = [0, 1, 2, 3].map(|at| row[at].word());
        let mark = if worse(row) { "  WORSE" } else { "" };
        text += &format!("{:width$}  {bare:14}  {stdbuf:14}  {unbuffer:14}  {weir}{mark}\n", cell.name());
    }
    text
}

#[test]
fn weir_has_no_worse_cell_than_stdbuf_or_unbuffer() {
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
    let results = all(&runs, |(cell, tool)| run(cell, *tool));
    let mut rows: Vec<(Cell, Vec<Result>)> =
        cells.iter().cloned().zip(results.chunks(TOOLS.len()).map(<[Result]>::to_vec)).collect();
    for (cell, row) in &mut rows {
        for _ in 0..AGAIN {
            if worse(row) {
                row[3] = run(cell, Tool::Weir);
            }
        }
    }
    let count = |of: usize, result: Result| rows.iter().filter(|(_, row)| row[of] == result).count();
    let line = |name: &str, of: usize| {
        format!(
            "run matrix: {name}: {} timely, {} late, {} lost, {} do not start, of {}\n",
            count(of, Result::Timely),
            count(of, Result::Late),
            count(of, Result::Lost),
            count(of, Result::DoesNotStart),
            rows.len()
        )
    };
    let text = table(&rows) + &line("stdbuf", 1) + &line("unbuffer", 2) + &line("weir", 3);
    // Past cargo test, which keeps what println! says to itself when all is well.
    std::io::stdout().write_all(text.as_bytes()).expect("standard output");
    let bad: Vec<String> = rows.iter().filter(|(_, row)| worse(row)).map(|(cell, _)| cell.name()).collect();
    assert!(bad.is_empty(), "weir does worse than stdbuf or unbuffer: {bad:#?}");
    let least = if campaign::is_quick() { 25 } else { 60 };
    assert!(!chosen.is_empty() || rows.len() >= least, "only {} cells could run here", rows.len());
}
