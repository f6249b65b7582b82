//! The entry point of fuzz/ into the objects of Ruby.

use super::RubyStreams;
use super::layout::RubyLayout;
use crate::fuzzing::{BASE, NO_PROCESS};

/// Returns a walker of each layout. The variables of the standard streams and of the class IO are the words 108 to 111.
pub(crate) fn streams() -> Vec<RubyStreams> {
    let layouts = ["2.7.4", "3.0.6", "3.1.2", "3.4.11"].into_iter().filter_map(RubyLayout::of);
    let of = |layout| RubyStreams {
        pid: NO_PROCESS,
        standard: [108, 109, 110].map(|word| BASE + 8 * word).to_vec(),
        layout,
        io_class: BASE + 8 * 111,
        objects: std::cell::RefCell::default(),
    };
    layouts.map(of).collect()
}
