//! `--events`: a line of JSON for each event of a copy.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use serde_json::{Value, json};
use weir_copier::{ContentResult, CopyControl, CopyMethod, CopyPhase};
use weir_model::copy::CopyDocument;
use weir_model::text_of;

/// Value of `schema` in the first event.
const SCHEMA: &str = "weir-copy-event/1";

/// The file of `--events`. Without the option every call does nothing.
pub struct EventLog(Option<Mutex<EventFile>>);

struct EventFile {
    file: Box<dyn Write + Send>,
    failure: Option<String>,
}

impl EventLog {
    /// Opens the file, if there is one, and writes the first event.
    pub fn open(path: Option<&Path>) -> Result<Self, String> {
        let Some(path) = path else { return Ok(Self(None)) };
        let file: Box<dyn Write + Send> = match path.as_os_str() == "-" {
            true => {
                crate::console::check_stdout().map_err(|error| crate::console::stdout_error(&error))?;
                Box::new(std::io::stdout())
            }
            false => Box::new(File::create(path).map_err(|error| {
                format!(
                    "--events {}: open: {}; choose another file",
                    path.display(),
                    weir_sys::errno_text(&error)
                )
            })?),
        };
        let log = Self(Some(Mutex::new(EventFile { file, failure: None })));
        log.write(&json!({ "event": "start", "schema": SCHEMA }));
        Ok(log)
    }

    /// Returns whether events are written.
    pub fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Writes an event as one line. The first failure is kept.
    pub fn write(&self, event: &Value) {
        let Some(file) = &self.0 else { return };
        let mut file = file.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if file.failure.is_none()
            && let Err(error) =
                file.file.write_all(format!("{event}\n").as_bytes()).and_then(|()| file.file.flush())
        {
            file.failure = Some(format!("--events: write: {}", weir_sys::errno_text(&error)));
        }
    }

    /// Returns why an event could not be written.
    pub fn failure(&self) -> Option<String> {
        let file = self.0.as_ref()?.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        file.failure.clone()
    }

    /// Writes how the content of a file was copied.
    pub fn content(&self, source: &Path, target: &Path, result: &ContentResult) {
        if !self.is_open() {
            return;
        }
        let sha256 = result.verified.map(|verified| hex(&verified.sha256));
        self.write(&json!({
            "event": "file",
            "source": text_of(source),
            "target": text_of(target),
            "method": result.method.name(),
            "bytes": result.bytes,
            "hole_bytes": result.hole_bytes,
            "trial": result.trial.map(|trial| json!({
                "methods": trial.methods.map(CopyMethod::name),
                "ns_per_mib": trial.ns_per_mib,
                "cpu_time": trial.by_cpu,
            })),
            "fallbacks": result.fallbacks.iter().map(super::reporter::fallback_text).collect::<Vec<_>>(),
            "sha256": sha256,
            "past_cache": result.verified.map(|verified| verified.past_cache),
        }));
    }

    /// Writes the progress of the copy.
    pub fn progress(&self, control: &CopyControl) {
        let (bytes, total, durable) = control.bytes();
        let phase = match control.phase() {
            CopyPhase::Copying => "copying",
            CopyPhase::Syncing => "syncing",
            CopyPhase::Verifying => "verifying",
        };
        self.write(&json!({
            "event": "progress",
            "phase": phase,
            "bytes": bytes,
            "known_bytes": total,
            "durable_bytes": durable,
            "files": control.files(),
        }));
    }

    /// Writes a warning or an error.
    pub fn message(&self, kind: &str, text: &str) {
        if self.is_open() {
            self.write(&json!({ "event": kind, "text": text }));
        }
    }

    /// Writes the last event, with the counts.
    pub fn end(&self, document: &CopyDocument) {
        if self.is_open() {
            self.write(&json!({ "event": "end", "result": document }));
        }
    }
}

/// Returns bytes in hexadecimal, as sha256sum prints them.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
