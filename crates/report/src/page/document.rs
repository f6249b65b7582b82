//! The documents that a page can be made from.

use serde::de::DeserializeOwned;
use serde_json::Value;
use weir_model::bench::compare::BenchComparison;
use weir_model::bench::trend::{self, BenchTrend};
use weir_model::bench::{self, BenchDocument};
use weir_model::copy::{self, CopyDocument};
use weir_model::lab::{self, LabDocument};
use weir_model::log::{self, LogCheckDocument};
use weir_model::run::{self, RunDocument};
use weir_model::trace::document::{self, TraceDocument};

use super::{Body, limits};

/// A document of weir that a page shows.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Document {
    Bench(Box<BenchDocument>),
    Compare(Box<BenchComparison>),
    Trend(Box<BenchTrend>),
    Trace(Box<TraceDocument>),
    Run(Box<RunDocument>),
    Lab(Box<LabDocument>),
    LogCheck(Box<LogCheckDocument>),
    Copy(Box<CopyDocument>),
}

/// Why a text is no document that a page can be made from, as a clause after the file's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentError(pub String);

/// The schemas in the order in which errors list them.
const SCHEMAS: [&str; 8] = [
    bench::SCHEMA,
    bench::compare::SCHEMA,
    trend::SCHEMA,
    document::SCHEMA,
    run::SCHEMA,
    lab::SCHEMA,
    log::CHECK_SCHEMA,
    copy::SCHEMA,
];

/// Reads a document, which its field `schema` identifies.
pub fn parse(text: &str) -> Result<Document, DocumentError> {
    let value: Value = serde_json::from_str(text).map_err(|error| match error.is_eof() {
        true => DocumentError(format!("the JSON is cut off ({error})")),
        false => DocumentError(format!("not JSON ({error})")),
    })?;
    if let Some(excess) = limits::excess(&value) {
        return Err(DocumentError(excess));
    }
    let known = SCHEMAS.join(", ");
    let Some(schema) = value.get("schema").and_then(Value::as_str).map(String::from) else {
        return Err(DocumentError(format!("not a result of weir: it has no 'schema' (known: {known})")));
    };
    let kind = |schema: &str| schema.rsplit_once('/').map_or("", |(kind, _)| kind).to_string();
    match schema.as_str() {
        bench::SCHEMA => read(value).map(|document| Document::Bench(Box::new(document))),
        bench::compare::SCHEMA => read(value).map(|document| Document::Compare(Box::new(document))),
        trend::SCHEMA => read(value).map(|document| Document::Trend(Box::new(document))),
        document::SCHEMA => read(value).map(|document| Document::Trace(Box::new(document))),
        run::SCHEMA => read(value).map(|document| Document::Run(Box::new(document))),
        lab::SCHEMA => read(value).map(|document| Document::Lab(Box::new(document))),
        log::CHECK_SCHEMA => read(value).map(|document| Document::LogCheck(Box::new(document))),
        copy::SCHEMA => read(value).map(|document| Document::Copy(Box::new(document))),
        other if SCHEMAS.iter().any(|known| kind(known) == kind(other)) => Err(DocumentError(format!(
            "its schema is '{}', which this weir does not know (known: {known}): use the version of weir that wrote it",
            shown(other)
        ))),
        other => Err(DocumentError(format!("its schema is '{}'; weir report shows {known}", shown(other)))),
    }
}

/// Returns the beginning of a text from a file for an error.
fn shown(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(60).collect()
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, DocumentError> {
    serde_json::from_value(value)
        .map_err(|error| DocumentError(format!("the fields are not those of its schema ({error})")))
}

impl Document {
    /// Returns the title of a page of this document.
    pub fn title(&self) -> String {
        match self {
            Self::Bench(document) => crate::bench::page_title(document),
            Self::Compare(comparison) => format!("weir bench compare: {} and {}", comparison.a, comparison.b),
            Self::Trend(trend) => crate::bench::trend_title(trend),
            Self::Trace(document) => crate::trace::page_title(document),
            Self::Run(document) => crate::plan::page_title(document),
            Self::Lab(document) => crate::lab::page_title(document),
            Self::LogCheck(document) => crate::log::page_title(document),
            Self::Copy(document) => crate::copy::page_title(document),
        }
    }

    /// Adds the document to a page. `prefix` distinguishes the identifiers of several documents.
    pub fn add_to(&self, body: &mut Body, prefix: &str) {
        match self {
            Self::Bench(document) => crate::bench::page(document, body, prefix),
            Self::Compare(comparison) => crate::bench::page_compare(comparison, body, prefix),
            Self::Trend(trend) => crate::bench::page_trend(trend, body, prefix),
            Self::Trace(document) => crate::trace::page(document, body, prefix),
            Self::Run(document) => crate::plan::page(document, body, prefix),
            Self::Lab(document) => crate::lab::document_page(document, body, prefix),
            Self::LogCheck(document) => crate::log::page(document, body, prefix),
            Self::Copy(document) => crate::copy::page(document, body, prefix),
        }
    }
}

/// Returns the title and the body of a page of several documents.
pub fn body(documents: &[Document]) -> (String, Body) {
    let mut body = Body::default();
    let title = match documents {
        [one] => one.title(),
        several => format!("{} results of weir", several.len()),
    };
    for (number, document) in documents.iter().enumerate() {
        let prefix = if number == 0 { String::new() } else { format!("{}-", number + 1) };
        body.title(&document.title());
        document.add_to(&mut body, &prefix);
    }
    (title, body)
}
