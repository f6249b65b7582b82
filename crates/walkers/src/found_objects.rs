//! The results of a search of the memory that can leave out a part of it.

use std::collections::BTreeSet;

/// The result of a search.
pub(crate) trait FoundObjects: Default + Send + 'static {
    /// Adds those of the former objects that are valid, by their addresses, after a search that was cut: they may be in the part that
    /// was left out.
    fn add_former(&mut self, former: Self, is_valid: &dyn Fn(u64) -> bool);
}

/// An object that a search has found.
pub(crate) trait FoundObject: Ord + Send + 'static {
    fn address(&self) -> u64;
}

impl FoundObject for u64 {
    fn address(&self) -> u64 {
        *self
    }
}

/// An object and its type.
impl<K: Ord + Send + 'static> FoundObject for (u64, K) {
    fn address(&self) -> u64 {
        self.0
    }
}

impl<T: FoundObject> FoundObjects for BTreeSet<T> {
    fn add_former(&mut self, former: Self, is_valid: &dyn Fn(u64) -> bool) {
        self.extend(former.into_iter().filter(|one| is_valid(one.address())));
    }
}
