//! The document as text, its streams apart, which two threads can write: a build's has little else.

use std::io;
use std::thread;

use serde::Serializer as _;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use weir_model::trace::document::StreamRow;
use weir_model::trace::{TraceDocument, TraceResult, TraceStream};

use crate::json::pretty;

/// What stands for the streams where there are none; no text in JSON has a newline, and nothing else is indented so.
const NONE: &str = "\n  \"streams\": []";
/// A stream's text is about as long.
const ONE_BYTES: usize = 704;
/// How a list of streams ends.
const END: &str = "\n  ]";
/// Fewer are written before a thread is there to help.
const MANY: usize = 500;

/// The streams as they stand in the document, in parts.
pub fn streams_text(streams: &[TraceStream]) -> serde_json::Result<Vec<String>> {
    if streams.len() < MANY {
        return Ok(vec![list_text(streams)?]);
    }
    let (first, second) = streams.split_at(streams.len() / 2);
    let (first, second) = thread::scope(|scope| {
        let beside = thread::Builder::new().spawn_scoped(scope, || list_text(second));
        let first = list_text(first);
        let second = match beside.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(text)) => text,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => list_text(second), // no more threads are to be had
        };
        (first, second)
    });
    joined(first?, second?).ok_or_else(|| serde::ser::Error::custom("a list of streams without an end"))
}

/// Two lists, neither of them empty, as the parts of one.
fn joined(mut first: String, mut second: String) -> Option<Vec<String>> {
    first.truncate(first.strip_suffix(END)?.len());
    second.starts_with('[').then(|| second.replace_range(..1, ","))?;
    Some(vec![first, second])
}

fn list_text(streams: &[TraceStream]) -> serde_json::Result<String> {
    let mut text = Vec::with_capacity(streams.len() * ONE_BYTES);
    let mut inside = PrettyFormatter::new();
    inside.begin_object(&mut io::sink()).map_err(serde_json::Error::io)?;
    Serializer::with_formatter(&mut text, inside).collect_seq(streams.iter().map(StreamRow::new))?;
    String::from_utf8(text).map_err(serde::ser::Error::custom)
}

/// The document as text, in parts: what stands before its streams, these (as [`streams_text`] made them), and what stands
/// behind.
pub fn document_text(trace: &TraceResult, streams: Vec<String>) -> serde_json::Result<Vec<String>> {
    let mut before = pretty(&TraceDocument::without_streams(trace))?;
    let at = before.find(NONE).map(|at| at + NONE.len() - "[]".len());
    let at = at.ok_or_else(|| serde::ser::Error::custom("a document without streams"))?;
    let behind = before.split_off(at).split_off("[]".len());
    Ok(std::iter::once(before).chain(streams).chain([behind]).collect())
}
