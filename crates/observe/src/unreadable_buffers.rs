//! Finds processes whose buffers no walker can read. Each image is checked once, soon after it starts.

use std::collections::{BTreeSet, HashMap};

use weir_walkers::unreadable;

/// Checks per tick. Most processes of a build end before their turn, and need none.
const CHECKS_PER_TICK: usize = 8;
/// After this many processes without unreadable buffers an executable is not checked again: a check reads all mappings,
/// which takes 0.1 ms, and a build runs its compiler thousands of times. More than one, because a process may be
/// checked before it has loaded its runtime.
const CHECKS_PER_EXECUTABLE: u32 = 3;

/// The processes to check and the sentences found so far.
#[derive(Debug, Default)]
pub(crate) struct UnreadableBuffers {
    /// The PID and, where known, the path of the executable.
    unchecked: Vec<(u32, Option<String>)>,
    /// How many processes of an executable had no unreadable buffer.
    readable: HashMap<String, u32>,
    sentences: BTreeSet<String>,
}

impl UnreadableBuffers {
    /// Adds a process that starts to be observed, or has called execve(2).
    pub fn begin(&mut self, pid: u32, executable: Option<&str>) {
        self.unchecked.push((pid, executable.map(str::to_owned)));
    }

    /// Checks the youngest processes and drops the others.
    pub fn check(&mut self) {
        self.check_by(unreadable);
    }

    /// Checks with `sentences_of`, which returns a sentence for each unreadable buffer, or None if the process is gone.
    fn check_by(&mut self, sentences_of: impl Fn(u32) -> Option<Vec<String>>) {
        for (pid, executable) in self.unchecked.drain(..).rev().take(CHECKS_PER_TICK) {
            let readable = executable.as_ref().and_then(|executable| self.readable.get(executable));
            if readable.is_some_and(|&count| count >= CHECKS_PER_EXECUTABLE) {
                continue;
            }
            let Some(sentences) = sentences_of(pid) else { continue };
            if let Some(executable) = executable.filter(|_| sentences.is_empty()) {
                *self.readable.entry(executable).or_default() += 1;
            }
            self.sentences.extend(sentences);
        }
    }

    /// Returns the sentences without duplicates.
    pub fn finish(self) -> BTreeSet<String> {
        self.sentences
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn an_executable_without_unreadable_buffers_is_checked_three_times() {
        let (mut unreadable, checked) = (UnreadableBuffers::default(), RefCell::new(Vec::new()));
        let of = |pid| {
            checked.borrow_mut().push(pid);
            // Process 2 is gone; process 5 has an unreadable buffer.
            (pid != 2).then(|| (pid == 5).then(|| "5".to_string()).into_iter().collect())
        };
        for pid in 1..=9 {
            unreadable.begin(pid, Some("cc1"));
            unreadable.check_by(of);
        }
        assert_eq!(*checked.borrow(), [1, 2, 3, 4], "three processes existed and had none");
        checked.borrow_mut().clear();
        for pid in 5..=12 {
            unreadable.begin(pid, Some("java"));
            unreadable.begin(pid, None);
            unreadable.check_by(of);
        }
        assert_eq!(checked.borrow().iter().filter(|&&pid| pid == 5).count(), 2);
        assert_eq!(checked.borrow().len(), 8 + 4, "every process of an unknown executable is checked");
        assert_eq!(unreadable.finish().into_iter().collect::<Vec<_>>(), ["5"]);
    }

    #[test]
    fn the_youngest_of_many_processes_are_checked() {
        let (mut unreadable, checked) = (UnreadableBuffers::default(), RefCell::new(Vec::new()));
        (1..=20).for_each(|pid| unreadable.begin(pid, None));
        (0..2).for_each(|_| {
            unreadable.check_by(|pid| {
                checked.borrow_mut().push(pid);
                Some(Vec::new())
            });
        });
        assert_eq!(*checked.borrow(), (13..=20).rev().collect::<Vec<_>>());
    }
}
