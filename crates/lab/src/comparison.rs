//! Compares two rows of a document of `weir bench` for check.sh, with the interval of their ratio.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;
use weir_model::Ratio;
use weir_model::bench::compare::ComparisonVerdict;
use weir_model::bench::{BenchRow, UNKNOWN_NOISE};

use crate::{Error, json_query};

/// Returns the ratio of the elapsed times of two rows, and the conclusion as `weir bench` draws it: the rows tie if the
/// interval contains 1, if the difference is within the noise of the run, or if too few rounds give no interval. The
/// conditions of each row are separated by spaces.
pub fn rows(path: &Path, first: &str, second: &str) -> Result<(ComparisonVerdict, Ratio), Error> {
    let failed = |source| Error::File { path: path.into(), call: "read", source };
    let row = |conditions: &str| -> Result<BenchRow, Error> {
        let words: Vec<String> = conditions.split_whitespace().map(String::from).collect();
        let found = json_query::entries(path, "rows", &words)?.into_iter().next();
        let found = found.ok_or_else(|| failed(io::Error::other(format!("it has no row {conditions}"))))?;
        serde_json::from_value(found).map_err(|error| failed(error.into()))
    };
    let ratio = weir_model::bench::ratio(&row(first)?, &row(second)?)
        .ok_or_else(|| failed(io::Error::other(format!("no round has both {first} and {second}"))))?;
    let document: Value = serde_json::from_slice(&fs::read(path).map_err(failed)?)
        .map_err(|error| failed(io::Error::other(error)))?;
    let noise = document["noise"]["wall"].as_f64().unwrap_or(UNKNOWN_NOISE);
    Ok((ComparisonVerdict::of(&ratio, noise), ratio))
}
