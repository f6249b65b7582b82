//! The screen of `weir peek`: what waits in each stream, since when, and when it would appear.

mod screen;
mod words;

pub use screen::screen;

use serde::Serialize;
use weir_model::peek::Peek;

/// The document of `--json`.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    schema: &'static str,
    processes: &'a [Peek],
}

/// As `docs/schemas/weir-peek-1.schema.json` says.
pub fn document(processes: &[Peek]) -> Document<'_> {
    Document { schema: "weir-peek/1", processes }
}
