//! The report and the files that were asked for.

use std::mem::ManuallyDrop;

use weir_bench::Error;
use weir_diagnose::Judgement;
use weir_model::trace::{Recording, TraceResult, TraceStream};
use weir_report::Style;
use weir_report::trace::{document_text, screen, streams_text, timeline};

use super::Args;
use super::status::Failure;
use crate::export::{Export, json};
use crate::output::Opened;
use crate::screen as terminal;

/// Files that were opened before the program starts, so that a wrong name costs no run.
pub struct Outputs {
    screen: Option<Export>,
    json: Opened,
    timeline: Option<Export>,
    record: Option<Export>,
}

impl Outputs {
    /// Opens what was asked for.
    pub fn open(args: &Args) -> Result<Self, Failure> {
        let open = |path: &Option<std::path::PathBuf>| {
            path.as_deref().map(Export::open).transpose().map_err(Failure::own)
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
            None if args.result.quiet() => Ok(()),
            None => to_stderr(&trace, args.all),
        }];
        if self.json.has_file() {
            let parts = streams_text(&trace.streams).and_then(|streams| document_text(&trace, streams));
            let parts = parts.map_err(|error| format!("JSON: {error}"));
            done.push(parts.and_then(|parts| self.json.write_parts(&ManuallyDrop::new(parts))));
        }
        let mut write = |export: Option<Export>, text: &dyn Fn() -> Result<String, String>| {
            done.extend(export.map(|export| text().and_then(|text| export.write(&text))));
        };
        write(self.timeline, &|| json(&timeline(recording)));
        write(self.record, &|| json(recording));
        // weir is about to end: freeing the memory of a build piece by piece takes a millisecond, of this and of the document.
        std::mem::forget(trace);
        done.into_iter().filter_map(Result::err).collect()
    }
}

fn to_stderr(trace: &TraceResult, all: bool) -> Result<(), String> {
    let text = screen(trace, all, &terminal::error_style());
    terminal::print_error(&text).map_err(|error| {
        Error::system("write", std::path::Path::new("standard error"), &error, "use --output FILE")
            .to_string()
    })
}
