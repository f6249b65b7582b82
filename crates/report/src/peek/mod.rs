//! The screen of `weir peek`: the pending bytes of each stream, their age, and when they would appear.

mod labels;
mod screen;

pub use screen::screen;
