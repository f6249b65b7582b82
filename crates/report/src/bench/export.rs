//! Runs and comparisons in the forms of other tools: continuous benchmarking and monitoring.

use serde_json::{Map, Value, json};
use weir_model::bench::compare::{BenchComparison, label};
use weir_model::bench::{BenchDocument, BenchRow, GroupKey};

/// A form for another tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ExportFormat {
    /// The input of github-action-benchmark with the tool `customSmallerIsBetter`.
    GithubActionBenchmark,
    /// Bencher Metric Format; times in nanoseconds.
    Bencher,
    /// The text format of Prometheus, for the textfile collector or a push gateway.
    Prometheus,
    /// OpenTelemetry metrics as JSON, for an OTLP/HTTP collector.
    OtlpJson,
}

impl ExportFormat {
    /// All formats with their names.
    pub const ALL: [(&'static str, Self); 4] = [
        ("github-action-benchmark", Self::GithubActionBenchmark),
        ("bencher", Self::Bencher),
        ("prometheus", Self::Prometheus),
        ("otlp-json", Self::OtlpJson),
    ];
}

/// One figure with its interval.
struct Sample {
    /// The row on one line, unique in the result.
    name: String,
    /// Properties of the row.
    labels: Vec<(&'static str, String)>,
    value: f64,
    ci95: [f64; 2],
}

/// Name, meaning and unit of the figures of a result.
struct Quantity {
    /// Name in snake case with the unit.
    name: &'static str,
    help: &'static str,
    /// Unit of OpenTelemetry (UCUM): `s`, or `1` for a ratio.
    unit: &'static str,
}

const ELAPSED: Quantity = Quantity {
    name: "weir_bench_elapsed_seconds",
    help: "Median elapsed time of a row of weir bench.",
    unit: "s",
};
const RATIO: Quantity = Quantity {
    name: "weir_bench_ratio",
    help: "Time of the second run divided by that of the first; below 1 the second is faster.",
    unit: "1",
};

/// Returns the elapsed times of a run in the form of another tool.
pub fn export(document: &BenchDocument, format: ExportFormat) -> String {
    let measured = document.rows.iter().filter_map(|row| {
        let elapsed = row.elapsed_s?;
        Some(Sample { name: label(row), labels: row_labels(row), value: elapsed.median, ci95: elapsed.ci95 })
    });
    let at_s = unix_seconds(&document.started).unwrap_or(0);
    text(&ELAPSED, &distinct(measured.collect()), format, at_s)
}

/// Returns the ratios of a comparison in the form of another tool.
pub fn export_compare(comparison: &BenchComparison, format: ExportFormat) -> String {
    let samples = comparison.rows.iter().map(|row| {
        let mut labels = group_labels(&row.group);
        labels.extend([("method", row.method.clone()), ("record_bytes", row.record_bytes.to_string())]);
        labels.extend(optional("buffer_bytes", row.buffer_bytes));
        labels.extend(optional("mode", row.mode.as_ref()));
        let values: Vec<&str> = labels.iter().map(|(_, value)| value.as_str()).collect();
        Sample { name: values.join(" "), value: row.ratio.value, ci95: row.ratio.ci95, labels }
    });
    text(&RATIO, &distinct(samples.collect()), format, 0)
}

/// Returns the samples with distinct names: an equal name gets a number.
fn distinct(mut samples: Vec<Sample>) -> Vec<Sample> {
    for at in 0..samples.len() {
        let (before, rest) = samples.split_at_mut(at);
        let sample = &mut rest[0];
        let mut number = 2;
        let name = sample.name.clone();
        while before.iter().any(|other| other.name == sample.name) {
            sample.name = format!("{name} #{number}");
            number += 1;
        }
    }
    samples
}

fn optional<T: ToString>(name: &'static str, value: Option<T>) -> Option<(&'static str, String)> {
    value.map(|value| (name, value.to_string()))
}

fn group_labels(key: &GroupKey) -> Vec<(&'static str, String)> {
    let mut labels = vec![
        ("workload", key.workload.clone()),
        ("bytes", key.bytes.to_string()),
        ("fs", key.fs.clone()),
        ("dir", key.dir.clone()),
        ("cache", key.cache.clone()),
        ("sync", key.sync.clone()),
    ];
    labels.extend(optional("sync_every_records", key.sync_every_records));
    labels.extend(optional("sync_every_bytes", key.sync_every_bytes));
    labels.extend(optional("advice", key.advice.as_ref()));
    labels
}

fn row_labels(row: &BenchRow) -> Vec<(&'static str, String)> {
    let mut labels = group_labels(&row.group);
    labels.extend([("method", row.method.clone()), ("record_bytes", row.record_bytes.to_string())]);
    labels.extend(optional("buffer_bytes", row.buffer_bytes));
    labels.extend(optional("mode", row.mode.as_ref()));
    labels.extend(optional("vector_records", row.vector_records));
    labels.extend(optional("queue_depth", row.queue_depth));
    labels
}

fn text(quantity: &Quantity, samples: &[Sample], format: ExportFormat, at_s: u64) -> String {
    let pretty = |value: &Value| crate::json::pretty(value).unwrap_or_default();
    match format {
        ExportFormat::GithubActionBenchmark => pretty(&github(quantity, samples)),
        ExportFormat::Bencher => pretty(&bencher(quantity, samples)),
        ExportFormat::Prometheus => prometheus(quantity, samples),
        ExportFormat::OtlpJson => pretty(&otlp(quantity, samples, at_s)),
    }
}

fn github(quantity: &Quantity, samples: &[Sample]) -> Value {
    let unit = if quantity.unit == "s" { "s" } else { "ratio" };
    let one = |sample: &Sample| {
        let half = (sample.ci95[1] - sample.ci95[0]) / 2.0;
        json!({"name": sample.name, "unit": unit, "value": sample.value, "range": format!("± {half:.3e}")})
    };
    samples.iter().map(one).collect()
}

/// Latencies are in nanoseconds: so is Bencher's built-in measure.
fn bencher(quantity: &Quantity, samples: &[Sample]) -> Value {
    let (measure, factor) = if quantity.unit == "s" { ("latency", 1e9) } else { ("ratio", 1.0) };
    let one = |sample: &Sample| {
        let [low, high] = sample.ci95.map(|end| end * factor);
        let value = json!({"value": sample.value * factor, "lower_value": low, "upper_value": high});
        (sample.name.clone(), json!({ measure: value }))
    };
    Value::Object(samples.iter().map(one).collect::<Map<_, _>>())
}

fn prometheus(quantity: &Quantity, samples: &[Sample]) -> String {
    let Quantity { name, help, .. } = quantity;
    let quoted = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let labels = |sample: &Sample| {
        let labels: Vec<String> =
            sample.labels.iter().map(|(name, value)| format!("{name}=\"{}\"", quoted(value))).collect();
        labels.join(",")
    };
    let family = |suffix: &str, about: &str, value: fn(&Sample) -> f64| {
        let mut text = format!("# HELP {name}{suffix} {help}{about}\n# TYPE {name}{suffix} gauge\n");
        for sample in samples {
            text += &format!("{name}{suffix}{{{}}} {:e}\n", labels(sample), value(sample));
        }
        text
    };
    family("", "", |sample| sample.value)
        + &family("_ci95_low", " Lower end of the 95 % interval.", |sample| sample.ci95[0])
        + &family("_ci95_high", " Upper end of the 95 % interval.", |sample| sample.ci95[1])
}

fn otlp(quantity: &Quantity, samples: &[Sample], at_s: u64) -> Value {
    let attribute = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let point = |sample: &Sample, value: f64| {
        let attributes: Vec<Value> =
            sample.labels.iter().map(|(name, value)| attribute(&format!("weir.{name}"), value)).collect();
        json!({"attributes": attributes, "timeUnixNano": format!("{at_s}000000000"), "asDouble": value})
    };
    let metric = |suffix: &str, value: fn(&Sample) -> f64| {
        let points: Vec<Value> = samples.iter().map(|sample| point(sample, value(sample))).collect();
        let name = format!(
            "{}{suffix}",
            quantity.name.replace("weir_bench_", "weir.bench.").replace("_seconds", "")
        );
        json!({"name": name, "description": quantity.help, "unit": quantity.unit, "gauge": {"dataPoints": points}})
    };
    json!({"resourceMetrics": [{
        "resource": {"attributes": [attribute("service.name", "weir")]},
        "scopeMetrics": [{
            "scope": {"name": "weir", "version": env!("CARGO_PKG_VERSION")},
            "metrics": [
                metric("", |sample| sample.value),
                metric(".ci95_low", |sample| sample.ci95[0]),
                metric(".ci95_high", |sample| sample.ci95[1]),
            ],
        }],
    }]})
}

/// Returns the seconds since 1970 of a time like `2026-11-25T08:00:00Z`.
fn unix_seconds(rfc3339: &str) -> Option<u64> {
    let field = |range: std::ops::Range<usize>| rfc3339.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (field(0..4)?, field(5..7)?, field(8..10)?);
    let (hour, minute, second) = (field(11..13)?, field(14..16)?, field(17..19)?);
    // Days of the civil calendar, with years that begin in March, so that the leap day is the last one.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468;
    u64::try_from(days * 86_400 + hour * 3600 + minute * 60 + second).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fixture;

    #[test]
    fn times_of_runs_are_seconds_since_1970() {
        assert_eq!(unix_seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(unix_seconds("2000-02-29T12:00:01Z"), Some(951_825_601));
        assert_eq!(unix_seconds("2026-11-25T08:00:00Z"), Some(1_795_593_600));
        assert_eq!(unix_seconds("yesterday"), None);
    }

    #[test]
    fn each_format_has_a_figure_for_each_row() {
        let document = fixture::everything();
        let rows = document.rows.iter().filter(|row| row.elapsed_s.is_some()).count();
        let read = |format| serde_json::from_str::<Value>(&export(&document, format)).unwrap();
        let github = read(ExportFormat::GithubActionBenchmark);
        assert_eq!(github.as_array().unwrap().len(), rows);
        let first = &document.rows.iter().find_map(|row| row.elapsed_s).unwrap();
        assert_eq!(github[0]["value"].as_f64(), Some(first.median));
        let bencher = read(ExportFormat::Bencher);
        assert_eq!(bencher.as_object().unwrap().len(), rows, "names are distinct");
        let latency = &bencher[github[0]["name"].as_str().unwrap()]["latency"];
        assert_eq!(latency["value"].as_f64(), Some(first.median * 1e9));
        let otlp = read(ExportFormat::OtlpJson);
        let metrics = &otlp["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
        assert_eq!(metrics[0]["name"], "weir.bench.elapsed");
        assert_eq!(metrics[0]["gauge"]["dataPoints"].as_array().unwrap().len(), rows);
        let prometheus = export(&document, ExportFormat::Prometheus);
        assert_eq!(prometheus.matches("\nweir_bench_elapsed_seconds{").count(), rows);
        assert_eq!(prometheus.matches("# TYPE").count(), 3);
    }

    #[test]
    fn labels_of_prometheus_are_quoted() {
        let mut document = fixture::textbook();
        document.rows.truncate(1);
        document.rows[0].group.dir = "a\"b\\c\n".into();
        let text = export(&document, ExportFormat::Prometheus);
        assert!(text.contains("dir=\"a\\\"b\\\\c\\n\""), "{text}");
    }
}
