//! `make bench-advise`: the predictions of `weir advise`. For each question the C programs of the three choices run, interleaved,
//! and their times are compared with each other and with the predictions.
//!
//! * A sample writes records without a pause: so many that it takes a fraction of a second. A timer's work is done after as many
//!   records as come in its interval at the rate of the question, so that a record has the same share of it.
//! * The first choice must be the fastest or within 10 %; a tie is an interval of the paired ratios that contains 1. A question
//!   whose first choice takes less than 0.5 % of the time at its rate is decided by the risk, not by the time, and its row says so.
//! * The measured time must be within a factor of 1.5 of the predicted one. Calibration and runs are interleaved, too: each question
//!   begins with a full calibration, and each of its blocks asks weir again before its runs. The ratio is taken within the block.
//! * A control (the same plain calls around the calibration and among the runs) shows how much the machine changed in between. It
//!   never makes a row reached: it says of a row that is not whether the machine or the model caused that.
//! * `make bench-advise` runs all of it, weir included, with real-time priority (chrt -r 1): on a machine with other work the time
//!   of a sample is that of the other processes.
//! * `WEIR_BENCH_QUICK=1` is a trial of the benchmark itself: few rounds and questions, its own JSON.

#[path = "../frame/mod.rs"]
mod frame;
#[path = "../run/rounds.rs"]
mod rounds;
#[path = "../targets/mod.rs"]
mod targets;

mod advice;
mod contender;
mod control;
mod judge;
mod questions;

use frame::parts::{self, Part, say};
use frame::{BoxError, bench_dir, figure};

use advice::Advice;
use bench_dir::BenchDir;
use contender::Contender;
use judge::{Block, Sums};
use questions::{QUESTIONS, Question};
use targets::Target;

/// Slower than the fastest by at most this factor.
const MAX_RATIO_TO_BEST: f64 = 1.10;
/// Percent of the time below which the adviser does not compare times.
const NEGLIGIBLE_PERCENT: f64 = 0.5;
/// Blocks of a question, each with a calibration, and rounds of the programs in a block.
const BLOCKS: usize = 3;
const ROUNDS: usize = 3;

const PARTS: [Part; 1] = [("questions", "the three choices of each question, beside each other", rows)];

fn main() -> Result<(), BoxError> {
    parts::run("advise", &PARTS, &[])
}

fn rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let questions = &QUESTIONS[..bench.pick(QUESTIONS.len(), 3)];
    let mut sums = Sums::default();
    for (number, question) in questions.iter().enumerate() {
        say("advise", &format!("{} of {}: {}", number + 1, questions.len(), question.name));
        compare(bench, question, &mut sums, rows)?;
    }
    sums.rows(rows);
    Ok(())
}

fn compare(
    bench: &BenchDir,
    question: &Question,
    sums: &mut Sums,
    rows: &mut Vec<Target>,
) -> Result<(), BoxError> {
    let advice = Advice::ask(bench, question, true)?;
    let contenders = contender::contenders(bench, question, &advice)?;
    if contenders.is_empty() {
        let text = "no way holds all limits on this machine".to_string();
        rows.push(figure::information(question.name.into(), text));
        return Ok(());
    }
    let blocks: Result<Vec<Block>, BoxError> =
        (0..bench.pick(BLOCKS, 2)).map(|_| block(bench, question, &contenders)).collect();
    let blocks = blocks?;
    rows.push(first(question, &contenders, &blocks, sums)?);
    for (which, one) in contenders.iter().enumerate() {
        rows.push(judge::prediction(question, one, which, &blocks, sums)?);
    }
    Ok(())
}

/// Asks weir for the predictions, then runs the programs.
fn block(bench: &BenchDir, question: &Question, contenders: &[Contender]) -> Result<Block, BoxError> {
    // In pairs, because a sync after others of its kind may differ.
    let controls =
        || Ok::<_, BoxError>([control::record_ns(bench, false)?, control::record_ns(bench, true)?]);
    let before = controls()?;
    let advice = Advice::ask(bench, question, false)?;
    let after = controls()?;
    let predicted = |one: &Contender| advice.record_ns(&one.name).ok_or("a way has no prediction any more");
    let predicted_ns = contenders.iter().map(predicted).collect::<Result<Vec<f64>, _>>()?;
    let programs = contenders.len();
    let times = rounds::rounds(ROUNDS, programs + 2, |which| match which.checked_sub(programs) {
        None => contenders[which].record_ns(bench, question),
        Some(kind) => control::record_ns(bench, kind == 1),
    })?;
    Ok(Block { predicted_ns, controls: [before, after], times })
}

/// Returns the row of the first choice beside the fastest.
fn first(
    question: &Question,
    contenders: &[Contender],
    blocks: &[Block],
    sums: &mut Sums,
) -> Result<Target, BoxError> {
    let times: Vec<Vec<f64>> = blocks.iter().flat_map(|block| block.times.iter().cloned()).collect();
    let median =
        |which: usize| Ok(figure::summary(&times.iter().map(|row| row[which]).collect::<Vec<_>>())?.median);
    let medians = (0..contenders.len()).map(median).collect::<Result<Vec<f64>, BoxError>>()?;
    let fastest = (0..medians.len()).min_by(|a, b| medians[*a].total_cmp(&medians[*b])).unwrap_or(0);
    let beside = figure::paired(rounds::pairs(&times, 0, fastest))?;
    let percent = question.rate * medians[0] / 1e9 * 100.0;
    let negligible = percent < NEGLIGIBLE_PERCENT;
    let is_best = beside.value <= MAX_RATIO_TO_BEST;
    let is_tie = beside.ci95[0] <= 1.0;
    sums.questions += 1;
    let reached = negligible || is_best || is_tie;
    sums.best += usize::from(reached);
    let remark = match (negligible, is_best, is_tie) {
        (true, ..) => format!("; {percent:.3} % of the time, so the risk decides"),
        (_, false, true) => "; a tie by its interval".into(),
        _ => String::new(),
    };
    Ok(Target {
        name: format!(
            "{}: {} beside the fastest, {}",
            question.name, contenders[0].name, contenders[fastest].name
        ),
        target: format!("at most {MAX_RATIO_TO_BEST:.2}"),
        measured: format!("{}{remark}", figure::ratio(&beside)),
        reached,
    })
}
