//! The output options of every verb that has a result, and the files that they name.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::console;
use crate::output_file::{OutputFile, is_stdout};

/// `--json FILE` and `--quiet`. With [`TableFiles`] also `--csv FILE` and `--markdown FILE`.
///
/// A verb flattens this group. With `mut_arg` the verb adds to the help what its JSON document is.
#[derive(clap::Args)]
pub struct OutputOptions<T: TableOptions = NoTableFiles> {
    /// Write the result as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    tables: T,

    /// Print only errors
    #[arg(long, short)]
    quiet: bool,
}

/// The options for tables that a verb adds to [`OutputOptions`].
pub trait TableOptions: clap::Args {
    /// Returns the file of `--csv`.
    fn csv(&self) -> Option<&Path>;
    /// Returns the file of `--markdown`.
    fn markdown(&self) -> Option<&Path>;
}

/// Most verbs have no table to export.
#[derive(clap::Args)]
pub struct NoTableFiles {}

impl TableOptions for NoTableFiles {
    fn csv(&self) -> Option<&Path> {
        None
    }

    fn markdown(&self) -> Option<&Path> {
        None
    }
}

/// `--csv FILE` and `--markdown FILE`.
#[derive(clap::Args)]
pub struct TableFiles {
    /// Write the rows as CSV; - is standard output
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Write the table as Markdown; - is standard output
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

impl TableOptions for TableFiles {
    fn csv(&self) -> Option<&Path> {
        self.csv.as_deref()
    }

    fn markdown(&self) -> Option<&Path> {
        self.markdown.as_deref()
    }
}

impl<T: TableOptions> OutputOptions<T> {
    /// Opens the files that were named. A verb calls this before its work, so that a wrong name fails at once.
    pub fn open(&self) -> Result<OutputFiles, String> {
        let paths = [self.json.as_deref(), self.tables.csv(), self.tables.markdown()];
        let [json, csv, markdown] = paths.map(OutputFile::open_optional);
        Ok(OutputFiles {
            json: json?,
            csv: csv?,
            markdown: markdown?,
            uses_stdout: paths.into_iter().flatten().any(is_stdout),
            quiet: self.quiet,
        })
    }

    /// Returns whether `--quiet` was given.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Returns whether the JSON document goes to standard output.
    pub fn json_to_stdout(&self) -> bool {
        self.json.as_deref().is_some_and(is_stdout)
    }
}

/// The files of the output options. Each file is written at most once.
pub struct OutputFiles {
    json: Option<OutputFile>,
    csv: Option<OutputFile>,
    markdown: Option<OutputFile>,
    uses_stdout: bool,
    quiet: bool,
}

impl OutputFiles {
    /// Returns whether the verb prints its screen: not with `--quiet`, and not if a file takes standard output.
    pub fn shows_screen(&self) -> bool {
        !self.quiet && !self.uses_stdout
    }

    /// Returns whether one of the results goes to standard output.
    pub fn uses_stdout(&self) -> bool {
        self.uses_stdout
    }

    /// Returns whether a JSON document was asked for and is not written yet.
    pub fn wants_json(&self) -> bool {
        self.json.is_some()
    }

    /// Prints the screen, unless nothing is printed there, and writes `document` as JSON if `--json` was given.
    pub fn present<D: Serialize>(
        &mut self,
        screen: impl FnOnce() -> String,
        document: &D,
    ) -> Result<(), String> {
        if self.shows_screen() {
            console::print_screen(&screen())?;
        }
        self.write_json(document)
    }

    /// Writes `document` as JSON if `--json` was given.
    pub fn write_json<D: Serialize>(&mut self, document: &D) -> Result<(), String> {
        self.json.take().map_or(Ok(()), |file| file.write(&json_text(document)?))
    }

    /// If `--json` was given, writes a JSON document that is already text: `parts`, one after the other.
    pub fn write_json_parts(&mut self, parts: &[impl AsRef<str>]) -> Result<(), String> {
        self.json.take().map_or(Ok(()), |file| file.write_parts(parts))
    }

    /// Writes the rows if `--csv` was given.
    pub fn write_csv(&mut self, text: impl FnOnce() -> String) -> Result<(), String> {
        self.csv.take().map_or(Ok(()), |file| file.write(&text()))
    }

    /// Writes the table if `--markdown` was given.
    pub fn write_markdown(&mut self, text: impl FnOnce() -> String) -> Result<(), String> {
        self.markdown.take().map_or(Ok(()), |file| file.write(&text()))
    }
}

/// Returns `value` as JSON.
pub fn json_text<T: Serialize>(value: &T) -> Result<String, String> {
    weir_report::json::pretty(value).map_err(|error| format!("JSON: {error}"))
}
