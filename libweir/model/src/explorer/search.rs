//! The search: visits every reachable state of a machine once, the nearest first.

use super::machine::State;
use super::run::{Action, Machine};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// Result of a search.
#[derive(Debug)]
pub struct Report {
    pub states: usize,
    /// Actions from one state to another.
    pub transitions: usize,
    /// States in which the model has ended.
    pub ends: usize,
    /// The first broken promise.
    pub violation: Option<Violation>,
}

#[derive(Debug)]
pub struct Violation {
    pub reason: String,
    /// The lines of the shortest trace to it, one for each step.
    pub trace: Vec<String>,
}

/// A state's 128-bit fingerprint is its key: two states with the same one would be taken for one. With 10^8 states the
/// probability of a single such pair is below 10^-22.
#[derive(Default)]
struct Fingerprints {
    index: HashMap<u128, u32, BuildHasherDefault<TopBits>>,
    code: Vec<u8>,
}

/// Passes on a key that is random already.
#[derive(Default)]
struct TopBits(u64);

impl Hasher for TopBits {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
    }
    fn write_u128(&mut self, key: u128) {
        self.0 = (key >> 64) as u64;
    }
}

/// Two multiplications of 64 bits, with full mixing of each word of the code.
fn fingerprint(code: &[u8]) -> u128 {
    const KEYS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];
    let mix = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let mut halves = [code.len() as u64 ^ KEYS[1], code.len() as u64 ^ KEYS[0]];
    for chunk in code.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        halves[0] = mix(halves[0] ^ word, KEYS[0]).wrapping_add(halves[0].rotate_left(29) ^ word);
        halves[1] =
            mix(halves[1] ^ word.rotate_left(32), KEYS[1]).wrapping_add(halves[1].rotate_left(37) ^ word);
    }
    u128::from(mix(halves[0], KEYS[1])) << 64 | u128::from(mix(halves[1], KEYS[0]))
}

impl Fingerprints {
    /// Returns the state's number and whether it is new.
    fn insert(&mut self, state: &State, threads: usize) -> (u32, bool) {
        state.encode(threads, &mut self.code);
        let next = self.index.len() as u32;
        let number = *self.index.entry(fingerprint(&self.code)).or_insert(next);
        (number, number == next)
    }
}

/// In a successor: a load returned an old value and did not do the same as the one in memory.
const BY_OLD_VALUE: u32 = 1 << 31;

/// The states by their numbers, in the order of their distance from the first.
#[derive(Default)]
struct Graph {
    parents: Vec<(u32, Action)>,
    /// The successors of all states, and for each state the end of its successors. Those by [`BY_OLD_VALUE`] have it set.
    successors: Vec<u32>,
    ends_at: Vec<usize>,
    is_end: Vec<bool>,
}

impl Graph {
    fn actions_to(&self, mut number: u32) -> Vec<Action> {
        let mut actions = Vec::new();
        while number != 0 {
            let (parent, action) = self.parents[number as usize];
            actions.push(action);
            number = parent;
        }
        actions.reverse();
        actions
    }

    /// Returns the nearest state from which the model cannot end by loads that return what is in memory. Old values lead to more
    /// states, but the end must not need them.
    fn first_endless(&self) -> Option<u32> {
        let mut can_end = self.is_end.clone();
        let mut changes = true;
        while changes {
            changes = false;
            for number in (0..can_end.len()).rev() {
                let begin = if number == 0 { 0 } else { self.ends_at[number - 1] };
                let mut next = self.successors[begin..self.ends_at[number]].iter();
                if !can_end[number] && next.any(|next| next & BY_OLD_VALUE == 0 && can_end[*next as usize]) {
                    can_end[number] = true;
                    changes = true;
                }
            }
        }
        can_end.iter().position(|can| !can).map(|number| number as u32)
    }
}

/// Visits every reachable state. Stops at the first broken promise.
pub fn explore(machine: &Machine) -> Report {
    let threads = machine.programs.len();
    let (mut fingerprints, mut graph) = (Fingerprints::default(), Graph::default());
    let mut queue = VecDeque::from([machine.start()]);
    let (mut actions, mut ends) = (Vec::new(), 0);
    fingerprints.insert(&queue[0], threads);
    graph.parents.push((0, Action { thread: 0, choice: 0 }));
    let mut number = 0;
    let report = |graph: &Graph, ends: usize, violation: Option<Violation>| Report {
        states: graph.parents.len(),
        transitions: graph.successors.len(),
        ends,
        violation,
    };
    while let Some(state) = queue.pop_front() {
        machine.actions(&state, &mut actions);
        let is_end = machine.promises.is_end(&state, threads);
        if actions.is_empty() && !is_end {
            let violation =
                violation(machine, &graph.actions_to(number), "every thread waits: a deadlock".into());
            return report(&graph, ends, Some(violation));
        }
        for action in &actions {
            let mut next = state;
            if let Err(reason) = machine.perform(&mut next, *action, &mut None) {
                let trace = [graph.actions_to(number), vec![*action]].concat();
                return report(&graph, ends, Some(violation(machine, &trace, reason)));
            }
            let (successor, is_new) = fingerprints.insert(&next, threads);
            assert!(successor < BY_OLD_VALUE, "too many states");
            graph
                .successors
                .push(successor | if machine.differs_by_age(&state, *action) { BY_OLD_VALUE } else { 0 });
            if is_new {
                graph.parents.push((number, *action));
                queue.push_back(next);
            }
        }
        graph.ends_at.push(graph.successors.len());
        graph.is_end.push(is_end);
        ends += usize::from(is_end);
        number += 1;
    }
    let endless = graph.first_endless().map(|number| {
        violation(
            machine,
            &graph.actions_to(number),
            "from here the model cannot end, whatever happens".into(),
        )
    });
    report(&graph, ends, endless)
}

/// Performs the actions again, and describes them.
fn violation(machine: &Machine, actions: &[Action], reason: String) -> Violation {
    let mut state = machine.start();
    let mut steps = Vec::new();
    for action in actions {
        let _ = machine.perform(&mut state, *action, &mut Some(&mut steps));
    }
    let describe = |(thread, step, effect): &(usize, u16, String)| {
        let program = &machine.programs[*thread];
        match program.sources.get(usize::from(*step)) {
            Some(source) => format!("{:9} {} {}: {effect}", program.name, source.file, source.function),
            None => format!("{:9} (store buffer): {effect}", program.name),
        }
    };
    Violation { reason, trace: steps.iter().map(describe).collect() }
}
