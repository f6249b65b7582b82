//! Formats weir's results: terminal tables and plots, HTML pages, Markdown, CSV, JSON.
//!
//! Of weir's crates, this one depends on `weir-model` only; it makes no system calls. The caller describes the terminal in a
//! [`Style`] and writes the returned text. Each verb's module turns a result into a list of [`block::Block`]s;
//! [`terminal`] and [`markdown`] draw that list, so both forms have the same content.

pub mod advise;
pub mod bar;
pub mod bench;
pub mod block;
pub mod check;
pub mod copy;
pub mod csv;
pub mod doctor;
pub mod flush;
pub mod json;
pub mod lab;
pub mod log;
pub mod markdown;
pub mod number;
pub mod page;
pub mod peek;
pub mod plan;
pub mod plot;
pub mod rescue;
pub mod scale;
pub mod style;
pub mod svg;
pub mod table;
pub mod terminal;
pub mod text;
pub mod top;
pub mod trace;

pub use block::Block;
pub use style::{Emphasis, Style};
