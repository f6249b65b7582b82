//! `--format`: the result in the form of another tool.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use weir_report::bench::ExportFormat;

use crate::output::OutputFiles;

/// `--format`.
#[derive(clap::Args)]
pub struct ExportOptions {
    /// Print the result for another tool instead of the screen: github-action-benchmark, bencher, prometheus, otlp-json
    #[arg(long, value_name = "FORMAT", value_parser = parser(), hide_possible_values = true)]
    format: Option<ExportFormat>,
}

fn parser() -> impl TypedValueParser<Value = ExportFormat> {
    PossibleValuesParser::new(ExportFormat::ALL.map(|(name, _)| name)).map(|wanted| {
        let format = ExportFormat::ALL.into_iter().find(|(name, _)| *name == wanted);
        format.expect("the parser knows the names").1
    })
}

impl ExportOptions {
    /// Returns the format, if one was given.
    pub fn format(&self) -> Option<ExportFormat> {
        self.format
    }

    /// Fails if the exported result and another one would go to standard output.
    pub fn check(&self, files: &OutputFiles) -> Result<(), String> {
        match self.format.is_some() && files.uses_stdout() {
            true => Err("--format prints to standard output: give --json and the like a file".into()),
            false => Ok(()),
        }
    }
}
