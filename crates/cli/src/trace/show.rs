//! The report and the files that were asked for.

use std::mem::ManuallyDrop;

use weir_bench::Error;
use weir_diagnose::Judgement;
use weir_model::trace::{Recording, TraceResult, TraceStream};
use weir_report::Style;
use weir_report::trace::{document_text, screen, streams_text, timeline};
use weir_tui::style::stderr_style;

use super::Args;
use super::status::Failure;
use crate::console;
use crate::output::{OutputFiles, json_text};
use crate::output_file::OutputFile;

/// Files that were opened before the program starts, so that a wrong name costs no run.
pub struct Outputs {
    screen: Option<OutputFile>,
    json: OutputFiles,
    timeline: Option<OutputFile>,
    record: Option<OutputFile>,
}

impl Outputs {
    /// Opens what was asked for.
    pub fn open(args: &Args) -> Result<Self, Failure> {
        let open = |path: &Option<std::path::PathBuf>| {
            path.as_deref().map(OutputFile::open).transpose().map_err(Failure::own)
        };
        Ok(Self {
            screen: open(&args.output)?,
            json: args.result.open().map_err(Failure::own)?,
            timeline: open(&args.timeline)?,
            record: open(&args.record)?,
        })
    }

    /// Writes everything; what could not be written keeps nothing else from being written.
    pub fn write(
        mut self,
        args: &Args,
        recording: &Recording,
        judged: &Judgement,
        streams: Vec<TraceStream>,
    ) -> Vec<String> {
        let Judgement { findings, verdict, pipelines } = judged;
        let trace = TraceResult { recording, findings, verdict: verdict.to_string(), pipelines, streams };
        let mut done = vec![match self.screen {
            Some(export) => export.write(&screen(&trace, args.all, &Style::default())),
            None if args.result.is_quiet() => Ok(()),
            None => to_stderr(&trace, args.all),
        }];
        if self.json.wants_json() {
            let parts = streams_text(&trace.streams).and_then(|streams| document_text(&trace, streams));
            let parts = parts.map_err(|error| format!("JSON: {error}"));
            done.push(parts.and_then(|parts| self.json.write_json_parts(&ManuallyDrop::new(parts))));
        }
        let mut write = |export: Option<OutputFile>, text: &dyn Fn() -> Result<String, String>| {
            done.extend(export.map(|export| text().and_then(|text| export.write(&text))));
        };
        write(self.timeline, &|| json_text(&timeline(recording)));
        write(self.record, &|| json_text(recording));
        // weir is about to end: freeing the memory of a build piece by piece takes a millisecond, of this and of the document.
        std::mem::forget(trace);
        done.into_iter().filter_map(Result::err).collect()
    }
}

fn to_stderr(trace: &TraceResult, all: bool) -> Result<(), String> {
    let text = screen(trace, all, &stderr_style());
    console::print_error(&text).map_err(|error| {
        Error::system("write", std::path::Path::new("standard error"), &error, "use --output FILE")
            .to_string()
    })
}
