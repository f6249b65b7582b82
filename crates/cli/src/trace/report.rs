//! The report of `weir trace` and its files.

use std::mem::ManuallyDrop;
use std::path::Path;

use weir_bench::Error;
use weir_diagnose::Diagnosis;
use weir_model::trace::{Recording, TraceResult, TraceStream};
use weir_report::Style;
use weir_report::trace::{document_text, screen, streams_text, timeline};
use weir_tui::style::stderr_style;

use super::Args;
use crate::console;
use crate::exit_status::CommandFailure;
use crate::output::{OutputFiles, json_text};
use crate::output_file::OutputFile;

/// The results of one trace and the files that they go to.
pub struct TraceReport<'a> {
    args: &'a Args,
    screen: Option<OutputFile>,
    json: OutputFiles,
    timeline: Option<OutputFile>,
    record: Option<OutputFile>,
}

impl<'a> TraceReport<'a> {
    /// Opens the files before the run, so that a wrong name costs no run.
    pub fn open(args: &'a Args) -> Result<Self, CommandFailure> {
        let open = || -> Result<Self, String> {
            Ok(Self {
                args,
                screen: OutputFile::open_optional(args.output.as_deref())?,
                json: args.result.open()?,
                timeline: OutputFile::open_optional(args.timeline.as_deref())?,
                record: OutputFile::open_optional(args.record.as_deref())?,
            })
        };
        open().map_err(CommandFailure::of_weir)
    }

    /// Writes all results, also if some of them fail, and returns the errors.
    pub fn write(
        mut self,
        recording: &Recording,
        judgement: &Diagnosis,
        streams: Vec<TraceStream>,
    ) -> Vec<String> {
        let Diagnosis { findings, verdict, pipelines } = judgement;
        // Neither the result nor the document is freed: weir ends soon, and freeing them takes a millisecond after the
        // trace of a software build.
        let result = TraceResult { recording, findings, verdict: verdict.to_string(), pipelines, streams };
        let result = ManuallyDrop::new(result);
        let mut written = vec![self.write_screen(&result)];
        if self.json.wants_document() {
            let parts = streams_text(&result.streams).and_then(|streams| document_text(&result, streams));
            let parts = parts.map_err(|error| format!("JSON: {error}"));
            written.push(parts.and_then(|parts| self.json.write_document_parts(&ManuallyDrop::new(parts))));
        }
        if let Some(file) = self.timeline {
            written.push(json_text(&timeline(recording)).and_then(|text| file.write(&text)));
        }
        if let Some(file) = self.record {
            written.push(json_text(recording).and_then(|text| file.write(&text)));
        }
        written.into_iter().filter_map(Result::err).collect()
    }

    fn write_screen(&mut self, result: &TraceResult) -> Result<(), String> {
        match self.screen.take() {
            Some(file) => file.write(&screen(result, self.args.all, &Style::default())),
            None if self.args.result.is_quiet() => Ok(()),
            None => console::print_error(&screen(result, self.args.all, &stderr_style())).map_err(|error| {
                Error::system("write", Path::new("standard error"), &error, "use --output FILE").to_string()
            }),
        }
    }
}
