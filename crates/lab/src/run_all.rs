//! Runs several experiments. Those that only check behaviour run in parallel; those that measure times run alone.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::run::{ExperimentRun, LabOptions, run};
use crate::{Error, Experiment};

/// Experiments in parallel. They sleep most of the time, so more than the CPUs are useful.
const PARALLEL_EXPERIMENTS: usize = 4;

/// Returns whether an experiment runs alone because it measures. A quick run does not compare with published figures.
fn alone(experiment: &Experiment, quick: bool) -> bool {
    experiment.alone || !quick && !experiment.published.is_empty()
}

/// Runs the experiments and calls `done` with each result and the experiment's index. Stops at the first one that
/// fails to run.
pub fn run_all(
    experiments: &[Experiment],
    options: &LabOptions,
    done: &mut (dyn FnMut(usize, ExperimentRun) + Send),
) -> Result<(), Error> {
    let done = Mutex::new(done);
    let (alone, beside): (Vec<usize>, Vec<usize>) =
        (0..experiments.len()).partition(|&at| alone(&experiments[at], options.quick));
    let queue = Mutex::new(VecDeque::from(beside));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let one = |at: usize| -> Result<(), Error> {
        let result = run(&experiments[at], options)?;
        done.lock().unwrap_or_else(PoisonError::into_inner)(at, result);
        Ok(())
    };
    let worker = || -> Result<(), Error> {
        while let Some(at) = next() {
            one(at)?;
        }
        Ok(())
    };
    thread::scope(|scope| -> Result<(), Error> {
        let start = |_| thread::Builder::new().spawn_scoped(scope, worker).ok();
        let workers: Vec<_> = (0..PARALLEL_EXPERIMENTS).map_while(start).collect();
        if workers.is_empty() {
            worker()?;
        }
        let mut ended = workers.into_iter().map(|worker| worker.join());
        ended.try_for_each(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    alone.into_iter().try_for_each(one)
}
