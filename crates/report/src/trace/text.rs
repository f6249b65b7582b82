//! The document as text, in two parts that two threads can write: a build's has its streams for the most part.

use std::io;

use serde::Serializer as _;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use super::document::{stream, without_streams};
use super::{Stream, Trace};
use crate::json::pretty;

/// What stands for the streams where there are none; no text in JSON has a newline, and nothing else is indented so.
const NONE: &str = "\n  \"streams\": []";
/// A stream's text is about as long.
const ONE_BYTES: usize = 704;

/// The streams as they stand in the document.
pub fn streams_text(streams: &[Stream]) -> serde_json::Result<String> {
    let mut text = Vec::with_capacity(streams.len() * ONE_BYTES);
    let mut inside = PrettyFormatter::new();
    inside.begin_object(&mut io::sink()).map_err(serde_json::Error::io)?;
    Serializer::with_formatter(&mut text, inside).collect_seq(streams.iter().map(stream))?;
    String::from_utf8(text).map_err(serde::ser::Error::custom)
}

/// The document as text: what stands before its streams, these (as [`streams_text`] made them), and what stands behind.
pub fn document_text(trace: &Trace, streams: String) -> serde_json::Result<[String; 3]> {
    let mut before = pretty(&without_streams(trace))?;
    let at = before.find(NONE).map(|at| at + NONE.len() - "[]".len());
    let at = at.ok_or_else(|| serde::ser::Error::custom("a document without streams"))?;
    let behind = before.split_off(at).split_off("[]".len());
    Ok([before, streams, behind])
}
