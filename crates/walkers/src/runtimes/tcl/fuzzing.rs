//! The entry point of fuzz/ into the channels of Tcl.

use super::TclChannels;
use super::layout::TclLayout;
use crate::fuzzing::NO_PROCESS;

/// Returns a walker of each library.
pub(crate) fn channels() -> Vec<TclChannels> {
    let layouts = ["libtcl8.6.so", "libtcl9.0.so"].map(TclLayout::of_library);
    layouts.into_iter().map(|layouts| TclChannels::new(NO_PROCESS, layouts)).collect()
}
