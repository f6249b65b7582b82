//! The interactive screens of weir: application state, key handling and the terminal.
//!
//! [`top`] is the live screen of `weir top`, [`lab_step`] the viewer of `weir lab NAME --step`. `weir-report` draws
//! both. The callers pass the data and the flags that signal handlers set, and choose the exit status.

mod alternate_screen;
pub mod lab_step;
pub mod style;
mod terminal_events;
pub mod top;

use std::time::Duration;

/// Longest wait for a key before the signal flags and the terminal's size are checked again: a fifth of a second is
/// not felt as a delay.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
