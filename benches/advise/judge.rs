//! Judges predictions: the measured time beside the predicted one, and the cause of those that are too far away.

use crate::BoxError;
use crate::contender::Contender;
use crate::figure;
use crate::questions::Question;
use crate::targets::Target;

/// Largest ratio of the measured and the predicted time, or its inverse.
const FACTOR: f64 = 1.5;

/// A calibration and the runs after it.
pub struct Block {
    /// Predictions of the programs, in their order.
    pub predicted_ns: Vec<f64>,
    /// Controls without and with a sync: before and after the calibration.
    pub controls: [[f64; 2]; 2],
    /// Rounds: the time of each program, then both controls.
    pub times: Vec<Vec<f64>>,
}

impl Block {
    fn median(&self, which: usize) -> Result<f64, BoxError> {
        Ok(figure::summary(&self.times.iter().map(|row| row[which]).collect::<Vec<_>>())?.median)
    }

    /// Returns how many times as long the control took among the runs as around the calibration.
    fn drift(&self, syncs: bool) -> Result<f64, BoxError> {
        let kind = usize::from(syncs);
        let around = (self.controls[0][kind] + self.controls[1][kind]) / 2.0;
        Ok(self.median(self.predicted_ns.len() + kind)? / around)
    }
}

/// Counts over all questions.
#[derive(Default)]
pub struct Sums {
    pub questions: usize,
    pub best: usize,
    predictions: usize,
    close: usize,
    by_machine: usize,
}

impl Sums {
    /// Adds the rows of the sums.
    pub fn rows(&self, rows: &mut Vec<Target>) {
        let all = |name: &str, reached: usize, all: usize| Target {
            name: name.into(),
            target: format!("all {all}"),
            measured: reached.to_string(),
            reached: reached == all,
        };
        rows.push(all("questions whose first choice is best or within 10 %", self.best, self.questions));
        rows.push(all("predicted times within a factor of 1.5", self.close, self.predictions));
        let missed = self.predictions - self.close;
        let causes = format!("{} of {missed}; the model {}", self.by_machine, missed - self.by_machine);
        rows.push(figure::information(
            "the others: the machine changed, as the control shows".into(),
            causes,
        ));
    }
}

/// Returns the row of a prediction: the median over the blocks of measured beside predicted.
pub fn prediction(
    question: &Question,
    one: &Contender,
    which: usize,
    blocks: &[Block],
    sums: &mut Sums,
) -> Result<Target, BoxError> {
    let mut ratios = Vec::new();
    let mut steady = Vec::new();
    let mut drifts = Vec::new();
    for block in blocks {
        let ratio = block.median(which)? / block.predicted_ns[which];
        let drift = block.drift(one.syncs)?;
        ratios.push(ratio);
        drifts.push(drift);
        steady.push(ratio / drift);
    }
    let median = |values: &[f64]| Ok::<_, BoxError>(figure::summary(values)?.median);
    let (ratio, without_drift) = (median(&ratios)?, median(&steady)?);
    let is_close = |ratio: f64| (1.0 / FACTOR..=FACTOR).contains(&ratio);
    let reached = is_close(ratio);
    let by_machine = !reached && is_close(without_drift);
    sums.predictions += 1;
    sums.close += usize::from(reached);
    sums.by_machine += usize::from(by_machine);
    let all: Vec<f64> = blocks.iter().flat_map(|block| block.times.iter().map(|row| row[which])).collect();
    let measured = figure::summary(&all)?;
    let predicted = median(&blocks.iter().map(|block| block.predicted_ns[which]).collect::<Vec<_>>())?;
    let cause = match (reached, by_machine) {
        (true, _) => "",
        (_, true) => ", so the machine changed",
        _ => ", so the model is wrong",
    };
    let shown: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
    Ok(Target {
        name: format!("{}: {}, measured beside predicted", question.name, one.name),
        target: format!("{:.2} to {FACTOR:.2}", 1.0 / FACTOR),
        measured: format!(
            "{ratio:.2} of {}: {:.0} [{:.0}, {:.0}] ns a record, predicted {predicted:.0}; control {:.2}{cause}",
            shown.join(", "),
            measured.median,
            measured.ci95[0],
            measured.ci95[1],
            median(&drifts)?,
        ),
        reached,
    })
}
