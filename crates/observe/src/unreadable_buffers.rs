//! Processes with buffers that nobody can read: each is asked about once, soon after it began to run something.

use std::collections::{BTreeSet, HashMap};

use weir_walkers::unreadable;

/// So many are asked at a time: most of a build's thousands are gone before their turn.
const ASKED_AT_ONCE: usize = 8;
/// A program of which so many processes had nothing of the kind is not asked again: a build runs its compiler thousands of
/// times, and to read all that a process has mapped takes 0.1 ms each. The first may have been asked before it had
/// loaded what matters.
const HARMLESS: u32 = 3;

/// What is known of them.
#[derive(Debug, Default)]
pub(crate) struct UnreadableBuffers {
    /// Not asked yet: with the program, where that is known.
    young: Vec<(u32, Option<String>)>,
    harmless: HashMap<String, u32>,
    found: BTreeSet<String>,
}

impl UnreadableBuffers {
    /// A process is followed from now on, or runs this program.
    pub fn begins(&mut self, pid: u32, program: Option<&str>) {
        self.young.push((pid, program.map(str::to_owned)));
    }

    /// Asks the youngest.
    pub fn ask(&mut self) {
        self.ask_by(unreadable);
    }

    /// `of`: a sentence for each buffer that cannot be read; None of a process that is gone.
    fn ask_by(&mut self, of: impl Fn(u32) -> Option<Vec<String>>) {
        for (pid, program) in self.young.drain(..).rev().take(ASKED_AT_ONCE) {
            let times = program.as_ref().and_then(|program| self.harmless.get(program));
            if times.is_some_and(|&times| times >= HARMLESS) {
                continue;
            }
            let Some(found) = of(pid) else { continue };
            if let Some(program) = program.filter(|_| found.is_empty()) {
                *self.harmless.entry(program).or_default() += 1;
            }
            self.found.extend(found);
        }
    }

    /// All sentences.
    pub fn finish(self) -> BTreeSet<String> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_program_that_never_had_any_is_not_asked_for_ever() {
        let (mut unread, asked) = (UnreadableBuffers::default(), RefCell::new(Vec::new()));
        let of = |pid| {
            asked.borrow_mut().push(pid);
            // 2 is gone; 5 has a buffer.
            (pid != 2).then(|| (pid == 5).then(|| "5".to_string()).into_iter().collect())
        };
        for pid in 1..=9 {
            unread.begins(pid, Some("cc1"));
            unread.ask_by(of);
        }
        assert_eq!(*asked.borrow(), [1, 2, 3, 4], "three were there and had nothing");
        asked.borrow_mut().clear();
        for pid in 5..=12 {
            unread.begins(pid, Some("java"));
            unread.begins(pid, None);
            unread.ask_by(of);
        }
        assert_eq!(asked.borrow().iter().filter(|&&pid| pid == 5).count(), 2);
        assert_eq!(asked.borrow().len(), 8 + 4, "of what nobody knows the name of each is asked");
        assert_eq!(unread.finish().into_iter().collect::<Vec<_>>(), ["5"]);
    }

    #[test]
    fn of_many_at_once_the_youngest_are_asked() {
        let (mut unread, asked) = (UnreadableBuffers::default(), RefCell::new(Vec::new()));
        (1..=20).for_each(|pid| unread.begins(pid, None));
        (0..2).for_each(|_| {
            unread.ask_by(|pid| {
                asked.borrow_mut().push(pid);
                Some(Vec::new())
            });
        });
        assert_eq!(*asked.borrow(), (13..=20).rev().collect::<Vec<_>>());
    }
}
