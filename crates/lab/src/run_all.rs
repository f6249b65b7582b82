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

/// Runs the experiments and calls `done` with each result and the experiment's index. After the first one that fails to run, no
/// further one begins.
pub fn run_all(
    experiments: &[Experiment],
    options: &LabOptions,
    done: &mut (dyn FnMut(usize, ExperimentRun) + Send),
) -> Result<(), Error> {
    let done = Mutex::new(done);
    let (alone, beside): (Vec<usize>, Vec<usize>) =
        (0..experiments.len()).partition(|&at| alone(&experiments[at], options.quick));
    let one = |at: usize| -> Result<(), Error> {
        let result = run(&experiments[at], options)?;
        done.lock().unwrap_or_else(PoisonError::into_inner)(at, result);
        Ok(())
    };
    run_parallel(beside.into(), &one)?;
    alone.into_iter().try_for_each(one)
}

/// Calls `run` with each number of the queue, in several threads. Returns an error of `run`. After the first one, each thread ends with
/// the call that it is in.
fn run_parallel(
    queue: VecDeque<usize>,
    run: &(impl Fn(usize) -> Result<(), Error> + Sync),
) -> Result<(), Error> {
    let queue = Mutex::new(queue);
    let left = || queue.lock().unwrap_or_else(PoisonError::into_inner);
    let next = || left().pop_front();
    let worker = || -> Result<(), Error> {
        while let Some(at) = next() {
            run(at).inspect_err(|_| left().clear())?;
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
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_experiment_begins_after_one_that_fails() {
        let begun = AtomicUsize::new(0);
        let run = |at: usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            if at == 0 {
                return Err(Error::Stopped);
            }
            thread::sleep(Duration::from_millis(50));
            Ok(())
        };
        assert!(matches!(run_parallel((0..400).collect(), &run), Err(Error::Stopped)));
        let begun = begun.into_inner();
        assert!(begun < 400, "{begun} of 400 began");
    }
}
