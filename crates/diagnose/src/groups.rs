//! Lists by a number, all in one piece of memory: a build has thousands of short ones, and each would be asked of the
//! allocator, and grow.

use std::ops::Range;

use foldhash::{HashMap, HashMapExt};

/// Values by a number.
pub(crate) struct Groups<T> {
    values: Vec<T>,
    ranges: HashMap<u32, Range<usize>>,
}

impl<T> Default for Groups<T> {
    fn default() -> Self {
        Self { values: Vec::new(), ranges: HashMap::new() }
    }
}

impl<T> Groups<T> {
    /// Each under its number; those of one number keep their order.
    pub fn of(mut numbered: Vec<(u32, T)>) -> Self {
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

    /// Those of this number.
    pub fn get(&self, number: u32) -> &[T] {
        self.ranges.get(&number).map_or(&[], |range| &self.values[range.clone()])
    }

    /// Every value, in the order of the numbers.
    pub fn all(&self) -> &[T] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_under_its_number_in_the_order_in_which_it_came() {
        let groups = Groups::of(vec![(7, 'a'), (2, 'b'), (7, 'c'), (0, 'd'), (2, 'e')]);
        assert_eq!(
            (groups.get(7), groups.get(2), groups.get(0)),
            (&['a', 'c'][..], &['b', 'e'][..], &['d'][..])
        );
        assert!(groups.get(1).is_empty());
        assert_eq!(groups.all(), ['d', 'b', 'e', 'a', 'c']);
        assert!(Groups::<char>::of(Vec::new()).get(0).is_empty());
    }
}
