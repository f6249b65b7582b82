//! The objects that a search of the memory has found, and whether to search again.

use std::collections::BTreeSet;

use crate::heap_search;

/// The objects of a runtime in a process. Each read checks whether they still exist.
#[derive(Debug, Clone)]
pub(crate) struct KnownObjects<T> {
    objects: BTreeSet<T>,
    /// No search is due.
    is_searched: bool,
}

impl<T> Default for KnownObjects<T> {
    fn default() -> Self {
        KnownObjects { objects: BTreeSet::new(), is_searched: false }
    }
}

impl<T: Ord> KnownObjects<T> {
    /// Makes the result of a search.
    #[cfg(test)]
    pub fn of(objects: impl Into<BTreeSet<T>>) -> KnownObjects<T> {
        KnownObjects { objects: objects.into(), is_searched: true }
    }

    /// Returns the objects, after a search if one is due. After a search that was cut, the former objects are still known.
    pub fn get(&mut self, search: impl FnOnce() -> BTreeSet<T>) -> &mut BTreeSet<T> {
        if !self.is_searched {
            self.objects = heap_search::with_former(std::mem::take(&mut self.objects), search);
            self.is_searched = true;
        }
        &mut self.objects
    }

    /// Returns the objects of the last search.
    pub fn found(&self) -> &BTreeSet<T> {
        &self.objects
    }

    /// Returns whether [`KnownObjects::get`] would search.
    pub fn is_search_due(&self) -> bool {
        !self.is_searched
    }

    /// Makes [`KnownObjects::get`] search.
    pub fn search_again(&mut self) {
        self.is_searched = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn former_objects_stay_known_after_a_search_that_was_cut() {
        let mut known = KnownObjects::default();
        assert_eq!(*known.get(|| BTreeSet::from([1, 2])), BTreeSet::from([1, 2]));
        assert_eq!(*known.get(|| BTreeSet::from([3])), BTreeSet::from([1, 2]), "no search is due");
        known.search_again();
        let cut = || {
            heap_search::cut_for_test();
            BTreeSet::from([3])
        };
        assert_eq!(*known.get(cut), BTreeSet::from([1, 2, 3]));
        assert!(heap_search::take_search_cut(), "the cut is reported");
        known.search_again();
        assert_eq!(*known.get(|| BTreeSet::from([3])), BTreeSet::from([3]));
        assert!(!heap_search::take_search_cut());
    }
}
