//! Dialogues: a process writes a request, waits for the answer that depends on it, and writes the next one. A buffer would keep
//! the request from the peer that must answer it, so neither end can gather its writes, and no read can return more than one
//! answer.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use foldhash::HashMap;
use weir_model::trace::{FIRST_CALLS, StreamCounts};
use weir_model::{Direction, StreamKind};

use crate::context::RuleContext;

/// The share of the first writes that a read must follow, unless no call was recorded. A request may have several writes.
const SOMETIMES: f64 = 1.0 / 3.0;

/// The share of the first writes that shows a dialogue by itself.
const MOSTLY: f64 = 0.75;

/// The numbers of writes that are answered, by descriptor and file of the answers.
type AnsweredWrites = HashMap<(i32, u32), u64>;

/// Inputs of one process.
type Inputs<'a> = Rc<[&'a StreamCounts]>;

/// Results of the searches for dialogues: a server with thousands of connections is searched once.
#[derive(Default)]
pub(crate) struct Dialogues<'a> {
    /// See [`RuleContext::answers_of`], by process.
    answers: RefCell<HashMap<u32, AnsweredWrites>>,
    /// See [`RuleContext::inputs_from`], by peer and process.
    inputs: RefCell<HashMap<(u32, u32), Inputs<'a>>>,
}

impl<'a> RuleContext<'a> {
    /// Returns whether the peer answers about every other write or more, and the process waits for the answers.
    pub fn is_answered(&self, stream: &StreamCounts) -> bool {
        self.answers_to(stream).iter().any(|answers| self.answers_most(answers, stream))
    }

    /// Returns the clause that follows advice to gather writes, if the process writes several times and then waits for one
    /// answer to all of it; else nothing.
    pub fn flush_clause(&self, stream: &StreamCounts) -> &'static str {
        let answers = self.answers_to(stream);
        let is_asked =
            answers.iter().any(|answers| answers.moving_calls() >= 2 && !self.answers_most(answers, stream));
        if is_asked {
            "; flush it before the program waits for the next input from the other end"
        } else {
            ""
        }
    }

    /// Returns whether the process needs each of its reads, because a read gets the answer to a write that came before it.
    pub fn is_answer(&self, stream: &StreamCounts) -> bool {
        let mut known = self.dialogues.answers.borrow_mut();
        let answers = known.entry(stream.pid).or_insert_with(|| self.answers_of(stream.pid));
        let written = answers.get(&(stream.fd, stream.file));
        written.is_some_and(|written| stream.moving_calls() * 2 <= written.saturating_mul(3))
    }

    /// Returns the inputs of a process that have about as many answers as every other write of an output, with the number of writes:
    /// the largest of several outputs.
    fn answers_of(&self, pid: u32) -> AnsweredWrites {
        let mut most = AnsweredWrites::default();
        for output in self.streams_of(pid).iter().filter(|own| own.direction == Direction::Out) {
            let answers = self.answers_to(output);
            for answers in answers.into_iter().filter(|answers| self.answers_most(answers, output)) {
                let written = most.entry((answers.fd, answers.file)).or_default();
                *written = output.moving_calls().max(*written);
            }
        }
        most
    }

    /// Returns the process's own inputs through which the readers of an output answer, if the first recorded calls do not show
    /// that it writes on without waiting for them.
    fn answers_to(&self, output: &StreamCounts) -> Vec<&'a StreamCounts> {
        if output.direction != Direction::Out {
            return Vec::new();
        }
        let is_own_input = |one: &&StreamCounts| (one.pid, one.direction) == (output.pid, Direction::In);
        let mut answers: Vec<&StreamCounts> = match self.kind(output.file) {
            // A server has thousands of them.
            StreamKind::Socket => self.streams_on(output.file).iter().copied().filter(is_own_input).collect(),
            StreamKind::Terminal => {
                let key = self.target_key(output.file);
                let inputs = self.streams_of(output.pid).iter().copied().filter(is_own_input);
                inputs.filter(|input| self.target_key(input.file) == key).collect()
            }
            _ => Vec::new(),
        };
        let peers: BTreeSet<u32> = self.readers(output).iter().map(|peer| peer.pid).collect();
        for peer in peers {
            answers.extend(self.inputs_from(peer, output.pid).iter());
        }
        // A server has other connections before and after this one.
        answers.retain(|input| input.first_s <= output.last_s && output.first_s <= input.last_s);
        answers.retain(|input| self.alternation(output, input).is_none_or(|share| share >= SOMETIMES));
        answers
    }

    /// Returns the inputs of a process that read what a peer writes.
    fn inputs_from(&self, peer: u32, pid: u32) -> Inputs<'a> {
        if let Some(known) = self.dialogues.inputs.borrow().get(&(peer, pid)) {
            return Rc::clone(known);
        }
        let written = self.streams_of(peer).iter().filter(|other| other.direction == Direction::Out);
        let read = written.flat_map(|written| self.readers(written));
        let inputs: Inputs = read.filter(|input| input.pid == pid).collect();
        self.dialogues.inputs.borrow_mut().insert((peer, pid), Rc::clone(&inputs));
        inputs
    }

    /// Returns the share of the first writes that a read follows before the next write, or None if no read was recorded.
    fn alternation(&self, output: &StreamCounts, input: &StreamCounts) -> Option<f64> {
        let times = |stream: &StreamCounts, reads: bool| -> Vec<f64> {
            let calls = self.calls_on(stream.file).iter().filter(|timed| {
                let moves = if reads { timed.call.op.reads() } else { timed.call.op.writes() };
                moves && timed.pid == stream.pid && timed.call.fd == stream.fd
            });
            calls.take(FIRST_CALLS as usize).map(|timed| timed.at_s).collect()
        };
        let (written, read) = (times(output, false), times(input, true));
        let last_read = *read.last()?;
        let pairs: Vec<&[f64]> = written.windows(2).filter(|pair| pair[0] < last_read).collect();
        let between = pairs.iter().filter(|pair| read.iter().any(|at| (pair[0]..pair[1]).contains(at)));
        (!pairs.is_empty()).then(|| between.count() as f64 / pairs.len() as f64)
    }

    /// Returns whether there are about as many answers as every other write. If calls of a gap could not be assigned to streams,
    /// the first calls decide.
    fn answers_most(&self, answers: &StreamCounts, output: &StreamCounts) -> bool {
        let is_counted = answers.moving_calls() * 2 >= output.moving_calls();
        let is_sampled = answers.estimated || output.estimated;
        is_counted || is_sampled && self.alternation(output, answers).is_some_and(|share| share >= MOSTLY)
    }
}
