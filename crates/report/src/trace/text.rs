//! The document as text. Two threads write its streams, which are most of the document of a large build.

use std::io;
use std::thread;

use serde::Serializer as _;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use weir_model::trace::document::StreamRow;
use weir_model::trace::{TraceDocument, TraceResult, TraceStream};

use crate::json::pretty;

/// The empty list of streams in a document. It occurs once: JSON strings have no newline, and no other line has this
/// indentation.
const NONE: &str = "\n  \"streams\": []";
/// Approximate length of a stream's text, to allocate memory once.
const ONE_BYTES: usize = 704;
/// End of a list of streams.
const END: &str = "\n  ]";
/// Smallest number of streams for a second thread: starting a thread takes about as long as writing fewer.
const MANY: usize = 500;

/// Returns the list of streams as text of the document, in one or two parts.
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
            Err(_) => list_text(second), // the thread could not be created
        };
        (first, second)
    });
    joined(first?, second?).ok_or_else(|| serde::ser::Error::custom("a list of streams without an end"))
}

/// Joins two non-empty lists into the two parts of one list.
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

/// Returns the document as text in parts: the text before the streams, `streams` from [`streams_text`], and the text
/// after them.
pub fn document_text(trace: &TraceResult, streams: Vec<String>) -> serde_json::Result<Vec<String>> {
    let mut before = pretty(&TraceDocument::without_streams(trace))?;
    let at = before.find(NONE).map(|at| at + NONE.len() - "[]".len());
    let at = at.ok_or_else(|| serde::ser::Error::custom("a document without streams"))?;
    let after = before.split_off(at).split_off("[]".len());
    Ok(std::iter::once(before).chain(streams).chain([after]).collect())
}
