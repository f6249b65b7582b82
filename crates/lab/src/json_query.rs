//! Queries of weir's JSON documents for check.sh: the figures of selected entries of an array. Faster than starting an
//! interpreter for each.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::Error;

/// Returns the entries of an array in a JSON document that fit all conditions `KEY=VALUE`. `KEY=*VALUE` fits values
/// that end with VALUE.
pub fn entries(path: &Path, array: &str, conditions: &[String]) -> Result<Vec<Value>, Error> {
    let failed = |call, source| Error::File { path: path.into(), call, source };
    let text = fs::read(path).map_err(|source| failed("open", source))?;
    let mut document: Value =
        serde_json::from_slice(&text).map_err(|error| failed("read", std::io::Error::other(error)))?;
    let Value::Array(entries) = document[array].take() else {
        return Err(failed("read", std::io::Error::other(format!("it has no array {array}"))));
    };
    let fits = |entry: &Value| conditions.iter().all(|condition| fits(entry, condition));
    Ok(entries.into_iter().filter(fits).collect())
}

fn fits(entry: &Value, condition: &str) -> bool {
    let Some((key, wanted)) = condition.split_once('=') else { return false };
    let value = figure(entry, key).unwrap_or_default();
    wanted.strip_prefix('*').map_or(value == wanted, |end| value.ends_with(end))
}

/// Returns a figure of an entry by its path, such as `elapsed_s.median`; None if the entry has no such figure.
fn figure(entry: &Value, path: &str) -> Option<String> {
    match path.split('.').try_fold(entry, |value, name| value.get(name))? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Returns one line for each entry that has all `figures`, which are separated by commas. Tabs separate the values.
pub fn lines(entries: &[Value], figures: &str) -> Vec<String> {
    let line = |entry: &Value| -> Option<String> {
        let of_entry = figures.split(',').map(|path| figure(entry, path)).collect::<Option<Vec<_>>>();
        of_entry.map(|values| values.join("\t"))
    };
    entries.iter().filter_map(line).collect()
}

/// Returns the sum of a figure over the entries that have it.
pub fn sum(entries: &[Value], path: &str) -> f64 {
    entries.iter().filter_map(|entry| figure(entry, path)?.parse::<f64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document() -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let streams = json!({"streams": [
            {"fd": 0, "path": "/tmp/large", "calls": 3, "sizes": {"1": 7}, "time": {"mean": 0.5}},
            {"fd": 1, "path": "/tmp/other", "calls": 4, "time": null}]});
        fs::write(file.path(), streams.to_string()).expect("written");
        file
    }

    #[test]
    fn entries_are_chosen_by_their_values() {
        let file = document();
        let of = |conditions: &[&str]| {
            let conditions: Vec<String> = conditions.iter().map(|one| one.to_string()).collect();
            entries(file.path(), "streams", &conditions).expect("an array").len()
        };
        assert_eq!(
            (of(&[]), of(&["fd=1"]), of(&["path=*/large"]), of(&["fd=1", "path=*/large"])),
            (2, 1, 1, 0)
        );
        assert_eq!(of(&["fd"]), 0, "not a condition");
        assert!(entries(file.path(), "rows", &[]).is_err());
    }

    #[test]
    fn entries_without_a_figure_are_left_out() {
        let all = entries(document().path(), "streams", &[]).expect("an array");
        assert_eq!(lines(&all, "path,time.mean"), ["/tmp/large\t0.5"]);
        assert_eq!(lines(&all, "calls"), ["3", "4"]);
        assert_eq!((sum(&all, "calls"), sum(&all, "sizes.1"), sum(&all, "none")), (7.0, 7.0, 0.0));
    }
}
