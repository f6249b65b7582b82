//! Limits of a document that a page is made from: a page of an unlimited text would stop a browser, and one of figures that no
//! measurement gives would look like a result.

use serde_json::Value;
use weir_model::Summary;

/// Longest text in a document: a page with a longer one is slow to show. Commands and file contents are shorter.
const MAX_TEXT: usize = 1 << 20;
/// Longest list that a page is made from: more rows than a trace of a large build has.
const MAX_LIST: usize = 2_000_000;

/// Returns what is too large or cannot be, with its place in the document.
pub(super) fn excess(value: &Value) -> Option<String> {
    match value {
        Value::Object(fields) if fields.contains_key("ci95") && is_no_summary(value) => Some(
            "has figures that no measurement gives: a negative one, or a median outside of its range".into(),
        ),
        Value::String(text) if text.len() > MAX_TEXT => {
            Some(format!("has a text of {} bytes, more than {MAX_TEXT}", text.len()))
        }
        Value::Array(items) if items.len() > MAX_LIST => {
            Some(format!("has a list of {} elements, more than {MAX_LIST}", items.len()))
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

/// Returns whether a value is a summary of samples, which are times and counts, and contradicts itself.
fn is_no_summary(value: &Value) -> bool {
    let Ok(summary) = serde_json::from_value::<Summary>(value.clone()) else { return false };
    let Summary { n, min, q1, median, mean, q3, max, sd, ci95 } = summary;
    // The mean and the quantiles are rounded results.
    let slack = 1e-9 * max.abs();
    let ordered = [0.0, min, q1, median, q3, max].windows(2).all(|pair| pair[0] <= pair[1] + slack);
    let inside = [mean, ci95[0], ci95[1]].iter().all(|one| (min - slack..=max + slack).contains(one));
    n == 0 || !ordered || !inside || ci95[0] > ci95[1] || sd < 0.0
}
