//! Many experiments: those that only watch behaviour run side by side, those that measure run alone.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::run::{Options, Result, run};
use crate::{Error, Experiment};

/// So many side by side: they wait most of the time.
const SIDE_BY_SIDE: usize = 4;

/// Figures that stand beside published ones are measured; a quick run has no time to wait for them.
fn alone(experiment: &Experiment, quick: bool) -> bool {
    experiment.alone || !quick && !experiment.published.is_empty()
}

/// Runs them and says each result to `done` as it comes, with the experiment's place in the list. Stops at the first
/// that cannot be run at all.
pub fn run_all(
    experiments: &[Experiment],
    options: &Options,
    done: &mut (dyn FnMut(usize, Result) + Send),
) -> std::result::Result<(), Error> {
    let done = Mutex::new(done);
    let (alone, beside): (Vec<usize>, Vec<usize>) =
        (0..experiments.len()).partition(|&at| alone(&experiments[at], options.quick));
    let queue = Mutex::new(VecDeque::from(beside));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let one = |at: usize| -> std::result::Result<(), Error> {
        let result = run(&experiments[at], options)?;
        done.lock().unwrap_or_else(PoisonError::into_inner)(at, result);
        Ok(())
    };
    let worker = || -> std::result::Result<(), Error> {
        while let Some(at) = next() {
            one(at)?;
        }
        Ok(())
    };
    thread::scope(|scope| -> std::result::Result<(), Error> {
        let workers: Vec<_> = (0..SIDE_BY_SIDE).map(|_| scope.spawn(worker)).collect();
        let mut ended = workers.into_iter().map(|worker| worker.join());
        ended.try_for_each(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    alone.into_iter().try_for_each(one)
}
