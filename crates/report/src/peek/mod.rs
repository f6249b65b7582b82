//! The screen of `weir peek`: what waits in each stream, since when, and when it would appear.

mod screen;
mod words;

pub use screen::screen;
