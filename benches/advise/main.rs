//! `make bench-advise`: the predictions of `weir advise`. For each question the C programs of the three choices run, interleaved,
//! and their times are compared with each other and with the predictions.
//!
//! * A sample writes records without a pause: so many that it takes a fraction of a second. A timer's work is done after as many
//!   records as come in its interval at the rate of the question, so that a record has the same share of it.
//! * The first choice must be the fastest or within 10 %. A question whose first choice takes less than 0.5 % of the time at its
//!   rate is decided by the risk, not by the time, and its row says so.
//! * The predicted time must be within a factor of 1.5 of the median of the measured times.
//! * `WEIR_BENCH_QUICK=1` is a trial of the benchmark itself: few rounds and questions, its own JSON.

#[path = "../frame/mod.rs"]
mod frame;
#[path = "../run/rounds.rs"]
mod rounds;
#[path = "../targets/mod.rs"]
mod targets;

mod contender;
mod questions;

use frame::parts::{self, Part, say};
use frame::{BoxError, bench_dir, figure};

use bench_dir::BenchDir;
use contender::Contender;
use questions::{QUESTIONS, Question};
use targets::Target;

/// Slower than the fastest by at most this factor.
const MOST_OF_BEST: f64 = 1.10;
/// Largest ratio of the measured and the predicted time, or its inverse.
const FACTOR: f64 = 1.5;
/// Percent of the time below which the adviser does not compare times.
const NEGLIGIBLE_PERCENT: f64 = 0.5;
/// Rounds of the three programs of a question.
const ROUNDS: usize = 9;

const PARTS: [Part; 1] = [("questions", "the three choices of each question, beside each other", rows)];

fn main() -> Result<(), BoxError> {
    parts::run("advise", &PARTS, &[])
}

/// Counts over all questions.
#[derive(Default)]
struct Sums {
    questions: usize,
    best: usize,
    predictions: usize,
    close: usize,
}

fn rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let questions = &QUESTIONS[..bench.pick(QUESTIONS.len(), 3)];
    let mut sums = Sums::default();
    for (number, question) in questions.iter().enumerate() {
        say("advise", &format!("{} of {}: {}", number + 1, questions.len(), question.name));
        compare(bench, question, number == 0, &mut sums, rows)?;
    }
    rows.push(sum("questions whose first choice is best or within 10 %", sums.best, sums.questions));
    rows.push(sum("predicted times within a factor of 1.5", sums.close, sums.predictions));
    Ok(())
}

fn sum(name: &str, reached: usize, all: usize) -> Target {
    Target {
        name: name.into(),
        target: format!("all {all}"),
        measured: reached.to_string(),
        reached: reached == all,
    }
}

fn compare(
    bench: &BenchDir,
    question: &Question,
    recalibrate: bool,
    sums: &mut Sums,
    rows: &mut Vec<Target>,
) -> Result<(), BoxError> {
    let contenders = contender::contenders(bench, question, recalibrate)?;
    if contenders.is_empty() {
        let text = "no way holds all limits on this machine".to_string();
        rows.push(figure::information(question.name.into(), text));
        return Ok(());
    }
    let times = rounds::rounds(bench.pick(ROUNDS, 3), contenders.len(), |which| {
        contenders[which].record_ns(bench, question)
    })?;
    let of = |which: usize| figure::summary(&times.iter().map(|row| row[which]).collect::<Vec<_>>());
    let medians =
        (0..contenders.len()).map(|which| Ok(of(which)?.median)).collect::<Result<Vec<f64>, BoxError>>()?;
    let fastest = (0..medians.len()).min_by(|a, b| medians[*a].total_cmp(&medians[*b])).unwrap_or(0);
    let beside = figure::paired(rounds::pairs(&times, 0, fastest))?;
    let percent = question.rate * medians[0] / 1e9 * 100.0;
    let negligible = percent < NEGLIGIBLE_PERCENT;
    let reached = negligible || beside.value <= MOST_OF_BEST;
    sums.questions += 1;
    sums.best += usize::from(reached);
    let remark = match negligible {
        true => format!("; {percent:.3} % of the time, so the risk decides"),
        false => String::new(),
    };
    rows.push(Target {
        name: format!(
            "{}: {} beside the fastest, {}",
            question.name, contenders[0].name, contenders[fastest].name
        ),
        target: format!("at most {MOST_OF_BEST:.2}"),
        measured: format!("{}{remark}", figure::ratio(&beside)),
        reached,
    });
    for (which, one) in contenders.iter().enumerate() {
        rows.push(prediction(question, one, &of(which)?, sums));
    }
    Ok(())
}

fn prediction(
    question: &Question,
    one: &Contender,
    measured: &weir_model::Summary,
    sums: &mut Sums,
) -> Target {
    let ratio = measured.median / one.predicted_ns;
    let reached = (1.0 / FACTOR..=FACTOR).contains(&ratio);
    sums.predictions += 1;
    sums.close += usize::from(reached);
    Target {
        name: format!("{}: {}, measured beside predicted", question.name, one.name),
        target: format!("{:.2} to {FACTOR:.2}", 1.0 / FACTOR),
        measured: format!(
            "{ratio:.2}: {:.0} [{:.0}, {:.0}] ns a record, predicted {:.0}",
            measured.median, measured.ci95[0], measured.ci95[1], one.predicted_ns
        ),
        reached,
    }
}
