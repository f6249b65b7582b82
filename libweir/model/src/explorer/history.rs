//! Old values: those that other threads have replaced, and that a thread's loads may still return.

use super::machine::Cell;

/// Old values whose order is kept. One more, and the oldest loses its place: see [`History::early`]. With 4, the search of a
/// stream's own thread and weir_flush_all finds a broken promise that none of the processors breaks.
pub const ORDERED: usize = 6;
/// Different old values without an order. A program that needs more is an error of the model: the machine panics.
pub const EARLY: usize = 20;

/// A value that another thread has replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Old {
    pub cell: Cell,
    pub value: u8,
    /// The thread has loaded a newer value: the entry only says when that was stored.
    pub only_time: bool,
}

/// The old values of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    ordered: [Old; ORDERED],
    entries: u8,
    early: [(Cell, u8); EARLY],
    earlier: u8,
}

impl History {
    /// Returns the old values in the order in which others replaced them.
    pub fn ordered(&self) -> &[Old] {
        &self.ordered[..usize::from(self.entries)]
    }

    /// Returns the cells and values that are older than all of [`History::ordered`]. Their order is not known: a load may
    /// return any of them, more than once, and orders nothing. So the search visits more states than there are, never fewer.
    pub fn early(&self) -> &[(Cell, u8)] {
        &self.early[..usize::from(self.earlier)]
    }

    /// Appends an old value. Returns false if the oldest one has lost its place in the order.
    pub fn remember(&mut self, cell: Cell, value: u8) -> bool {
        let has_room = usize::from(self.entries) < ORDERED;
        if !has_room {
            let oldest = self.ordered[0];
            if !oldest.only_time {
                self.insert_early((oldest.cell, oldest.value));
            }
            self.keep(|number, _| number.is_none_or(|number| number > 0));
        }
        self.ordered[usize::from(self.entries)] = Old { cell, value, only_time: false };
        self.entries += 1;
        has_room
    }

    fn insert_early(&mut self, old: (Cell, u8)) {
        let Err(at) = self.early().binary_search(&old) else { return };
        self.early.copy_within(at..usize::from(self.earlier), at + 1);
        self.early[at] = old;
        self.earlier += 1;
    }

    /// Keeps those values for which `keeps` is true of their number in the order, or `None`, and of their cell. The oldest needs
    /// no time.
    pub fn keep(&mut self, keeps: impl Fn(Option<usize>, Cell) -> bool) {
        let mut kept = 0;
        for number in 0..usize::from(self.earlier) {
            let old = self.early[number];
            if keeps(None, old.0) {
                self.early[kept] = old;
                kept += 1;
            }
        }
        self.early[kept..].fill((0, 0));
        self.earlier = kept as u8;
        kept = 0;
        for number in 0..usize::from(self.entries) {
            let entry = self.ordered[number];
            if keeps(Some(number), entry.cell) && (kept > 0 || self.earlier > 0 || !entry.only_time) {
                self.ordered[kept] = entry;
                kept += 1;
            }
        }
        self.ordered[kept..].fill(Old::default());
        self.entries = kept as u8;
    }

    /// A load of the cell returns the value of the entry with this number or, with `None`, the one in memory. Later loads of
    /// the cell return no older value. After a load with acquire order, later loads of other cells return no value that was
    /// replaced before this one was stored.
    pub fn return_value(&mut self, cell: Cell, entry: Option<usize>, acquire: bool) {
        let end = entry.unwrap_or(usize::from(self.entries));
        let stored_at = self.ordered()[..end].iter().rposition(|old| old.cell == cell);
        if let Some(stored_at) = stored_at {
            self.ordered[stored_at].only_time = true;
        }
        let same_or_newer = |number: Option<usize>| match stored_at {
            Some(stored_at) => number >= Some(stored_at),
            None => number.is_some(),
        };
        match stored_at {
            Some(_) if acquire => self.keep(|number, _| number > stored_at),
            _ => self.keep(|number, of| of != cell || same_or_newer(number)),
        }
    }

    /// Appends the code of the values: equal histories have equal codes.
    pub fn encode(&self, code: &mut Vec<u8>) {
        code.extend_from_slice(&[self.entries, self.earlier]);
        code.extend(
            self.ordered().iter().flat_map(|old| [old.cell | u8::from(old.only_time) << 7, old.value]),
        );
        code.extend(self.early().iter().flat_map(|(cell, value)| [*cell, *value]));
    }
}
