//! What weir's results look like: terminal tables and plots, Markdown, CSV, JSON.
//!
//! No system call is made here: the caller says in a [`Style`] what the terminal can do, and writes
//! what it gets. A result becomes a list of [`block::Block`]s once; [`terminal`] and [`markdown`] each
//! draw that list, so every form tells the same.

pub mod bar;
pub mod bench;
pub mod block;
pub mod check;
pub mod csv;
pub mod json;
pub mod lab;
pub mod markdown;
pub mod number;
pub mod peek;
pub mod plot;
pub mod scale;
pub mod style;
pub mod table;
pub mod terminal;
pub mod text;
pub mod top;
pub mod trace;
pub mod why;

pub use block::Block;
pub use style::{Emphasis, Style};
