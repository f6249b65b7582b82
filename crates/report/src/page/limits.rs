//! Limits of a document that a page is made from: a page of an unlimited text would stop a browser.

use serde_json::Value;

/// Longest text in a document: a page with a longer one is slow to show. Commands and file contents are shorter.
const TEXT_MOST: usize = 1 << 20;
/// Longest list that a page is made from: more rows than a trace of a large build has.
const LIST_MOST: usize = 2_000_000;

/// Returns what is too large, with its place in the document.
pub(super) fn excess(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.len() > TEXT_MOST => {
            Some(format!("has a text of {} bytes, more than {TEXT_MOST}", text.len()))
        }
        Value::Array(items) if items.len() > LIST_MOST => {
            Some(format!("has a list of {} elements, more than {LIST_MOST}", items.len()))
        }
        Value::Array(items) => items.iter().find_map(excess),
        Value::Object(fields) => fields.iter().find_map(|(name, value)| placed(name, value)),
        _ => None,
    }
}

fn placed(name: &str, value: &Value) -> Option<String> {
    let text = excess(value)?;
    Some(match text.starts_with("has ") {
        true => format!("'{name}' {text}"),
        false => text,
    })
}
