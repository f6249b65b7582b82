//! Values grouped by a number and stored in one vector. The trace of a software build has thousands of small groups; a vector
//! for each would cost an allocation each.

use std::ops::Range;

use foldhash::{HashMap, HashMapExt};

/// Values grouped by process or open file.
pub(crate) struct Grouped<T> {
    values: Vec<T>,
    ranges: HashMap<u32, Range<usize>>,
}

impl<T> Default for Grouped<T> {
    fn default() -> Self {
        Self { values: Vec::new(), ranges: HashMap::new() }
    }
}

impl<T> Grouped<T> {
    /// Groups values by number. The values of a group keep their order.
    pub fn new(mut numbered: Vec<(u32, T)>) -> Self {
        numbered.sort_by_key(|(number, _)| *number);
        let mut ranges = HashMap::new();
        let mut end = 0;
        for run in numbered.chunk_by(|one, other| one.0 == other.0) {
            let start = end;
            end += run.len();
            ranges.insert(run[0].0, start..end);
        }
        Self { values: numbered.into_iter().map(|(_, value)| value).collect(), ranges }
    }

    /// Returns the values of a group, or none if there is no such group.
    pub fn get(&self, number: u32) -> &[T] {
        self.ranges.get(&number).map_or(&[], |range| &self.values[range.clone()])
    }

    /// Returns all values, ordered by number.
    pub fn all(&self) -> &[T] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_group_keep_their_order() {
        let grouped = Grouped::new(vec![(7, 'a'), (2, 'b'), (7, 'c'), (0, 'd'), (2, 'e')]);
        assert_eq!(
            (grouped.get(7), grouped.get(2), grouped.get(0)),
            (&['a', 'c'][..], &['b', 'e'][..], &['d'][..])
        );
        assert!(grouped.get(1).is_empty());
        assert_eq!(grouped.all(), ['d', 'b', 'e', 'a', 'c']);
        assert!(Grouped::<char>::new(Vec::new()).get(0).is_empty());
    }
}
