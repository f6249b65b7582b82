//! Metrics of a running collector in the text format of Prometheus: a file, and a small HTTP server.

mod replacement;
mod server;

pub(crate) use server::{MetricsServer, path};

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use weir_model::log::LogDocument;

use crate::options::parse_address;

/// A destination of `--metrics`: Prometheus reads a file through its node exporter, and HTTP itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricsTarget {
    /// A file that is replaced every 15 seconds and at the end.
    File(PathBuf),
    /// An HTTP server without encryption and password.
    Http(SocketAddr),
}

impl FromStr for MetricsTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("http:") {
            Some(address) => parse_address(address).map(MetricsTarget::Http),
            None if text.is_empty() => Err("the metrics need a file, or http:[HOST:]PORT".into()),
            None => Ok(MetricsTarget::File(text.into())),
        }
    }
}

/// The interval of Prometheus' own default is 60 s, that of its examples 15 s.
const INTERVAL: Duration = Duration::from_secs(15);

/// A file with metrics.
#[derive(Debug)]
pub(crate) struct MetricsFile {
    path: PathBuf,
    next: Instant,
    failing: bool,
}

impl MetricsFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, next: Instant::now(), failing: false }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.next
    }

    /// Replaces the file, so that a reader sees the old or the new text, never a part. Returns a message at the first error.
    pub(crate) fn write(&mut self, now: Instant, document: &LogDocument) -> Option<String> {
        self.next = now + INTERVAL;
        let result = replacement::replace(&self.path, &text(document));
        let Err(error) = result else {
            self.failing = false;
            return None;
        };
        let error = weir_sys::errno_text(&error);
        let first = !std::mem::replace(&mut self.failing, true);
        first.then(|| {
            format!("write {}: {error}: weir tries again every 15 s", crate::error::shown(&self.path))
        })
    }
}

/// Returns the metrics: counters since the start, and the values of now.
pub(crate) fn text(document: &LogDocument) -> String {
    let totals = &document.totals;
    let counters = [
        ("records", "Records in the log.", totals.records),
        ("received_bytes", "Bytes that the sources sent.", totals.bytes),
        ("log_bytes", "Bytes of records that the log accepted.", document.log_bytes),
        ("dropped_records", "Records dropped by the kernel, or because the memory was full.", totals.dropped),
        (
            "refused_records",
            "Records longer than the maximum, or of a length that does not fit the log, refused.",
            totals.refused,
        ),
        ("unfinished_records", "Last records of sources, without their end.", totals.unfinished),
        ("split_records", "Records that the next one continues.", totals.split),
        ("cut_records", "Records in the log without their end.", totals.cut),
        ("syncs", "Calls of fdatasync.", document.syncs),
        ("rotations", "Rotations of the log.", document.rotations),
        ("stalls", "How often the log could not be written for a while.", document.stalls),
    ];
    let mut out = String::new();
    for (name, help, value) in counters {
        metric(&mut out, &format!("{name}_total"), help, "counter", value as f64);
    }
    let held: u64 = document.sources.iter().map(|source| source.held_bytes).sum();
    let gauges = [
        ("uptime_seconds", "Seconds since the start.", Some(document.elapsed_s)),
        ("connections", "Open connections.", Some(document.connections as f64)),
        ("pending_bytes", "Accepted bytes that are not written.", Some(document.pending_bytes as f64)),
        ("backlog_bytes", "Bytes of the sources that are no record in the log yet.", Some(held as f64)),
        ("stalled", "1 while the log cannot be written.", Some(f64::from(u8::from(document.stalled)))),
        ("last_sync_age_seconds", "Seconds since the last successful sync.", document.last_sync_s),
        ("sync_failed", "1 after a failed sync.", Some(f64::from(u8::from(document.sync_error.is_some())))),
    ];
    for (name, help, value) in gauges {
        if let Some(value) = value {
            metric(&mut out, name, help, "gauge", value);
        }
    }
    out
}

/// Appends one metric without labels: names of connections would make a series of each.
fn metric(out: &mut String, name: &str, help: &str, kind: &str, value: f64) {
    // Writing to a String does not fail.
    let _ = write!(
        out,
        "# HELP weir_log_{name} {help}\n# TYPE weir_log_{name} {kind}\nweir_log_{name} {value}\n"
    );
}
