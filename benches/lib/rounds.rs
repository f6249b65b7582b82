//! Shuffled rounds: each runs every contender of a group once.

use std::time::Instant;

use crate::contender::{self, Entry, Out, Sample};
use crate::data::Data;
use crate::jobs::Group;
use crate::{BoxError, say};

/// With fewer rounds a bootstrap interval means nothing.
const MIN_ROUNDS: usize = 7;

/// The samples of a group.
pub struct GroupSamples {
    /// The contenders that could run, in the group's order, each with one sample per round.
    pub samples: Vec<(Entry, Vec<Sample>)>,
    /// The contenders that could not run: label and reason.
    pub absent: Vec<(String, String)>,
}

impl GroupSamples {
    /// Returns the samples of a contender, or None if it could not run.
    pub fn of(&self, label: &str) -> Option<&(Entry, Vec<Sample>)> {
        self.samples.iter().find(|(entry, _)| entry.label == label)
    }
}

/// Shuffles with splitmix64 and a fixed seed, so that two runs of the benchmark have the same orders.
pub struct Shuffle(pub u64);

impl Shuffle {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns the numbers below `n` in random order.
    pub fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, (self.next() % (i as u64 + 1)) as usize);
        }
        order
    }
}

/// Runs rounds until `budget_s` is over. `once` runs a contender, given its index and the round.
pub fn interleave<S>(
    n: usize,
    budget_s: f64,
    mut once: impl FnMut(usize, usize) -> Result<S, BoxError>,
) -> Result<Vec<Vec<S>>, BoxError> {
    let mut samples: Vec<Vec<S>> = (0..n).map(|_| Vec::new()).collect();
    let (mut shuffle, started) = (Shuffle(n as u64), Instant::now());
    let mut rounds = 0;
    while rounds < MIN_ROUNDS || started.elapsed().as_secs_f64() < budget_s {
        for i in shuffle.order(n) {
            samples[i].push(once(i, rounds)?);
        }
        rounds += 1;
    }
    Ok(samples)
}

/// Checks the output of every contender, then measures.
pub fn run(group: &Group, data: &Data) -> Result<GroupSamples, BoxError> {
    let (absent, entries): (Vec<_>, Vec<_>) =
        group.entries.iter().cloned().partition(|entry| entry.program.absent().is_some());
    for entry in &entries {
        let path = if entry.out == Out::Over { data.output() } else { data.new_output()? };
        contender::run_on(entry, &data.input(entry), &path, 0)?;
        data.check(entry, &path)?;
    }
    let samples =
        interleave(entries.len(), group.budget_s, |i, round| contender::run(&entries[i], data, round))?;
    say(&format!("  {} rounds of {}", samples.first().map_or(0, Vec::len), entries.len()));
    let absent = absent.into_iter().map(|e| (e.label, e.program.absent().unwrap_or_default())).collect();
    Ok(GroupSamples { samples: entries.into_iter().zip(samples).collect(), absent })
}
