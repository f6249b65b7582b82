//! The output options of every verb that has a result, and the files that they name.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;

use crate::console;
use crate::exit_status::{FAILED, USAGE};
use crate::output_file::{OutputFile, is_stdout};
use crate::page_file;

/// `--json FILE` and `--quiet`. With [`PageFile`] also `--html FILE`, with [`TableFiles`] also `--csv FILE` and
/// `--markdown FILE`.
///
/// A verb flattens this group. With `mut_arg` the verb adds to the help what its JSON document is.
#[derive(clap::Args)]
pub struct OutputOptions<F: FileOptions = NoFiles> {
    /// Write the result as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    files: F,

    /// Print only errors
    #[arg(long, short)]
    quiet: bool,
}

/// The options for files that a verb adds to [`OutputOptions`].
pub trait FileOptions: clap::Args {
    /// Returns `--html` and `--open`, if the verb has them.
    fn page(&self) -> Option<&PageFile> {
        None
    }
    /// Returns the file of `--csv`.
    fn csv(&self) -> Option<&Path> {
        None
    }
    /// Returns the file of `--markdown`.
    fn markdown(&self) -> Option<&Path> {
        None
    }
}

/// For a verb whose result is no page and no table.
#[derive(clap::Args)]
pub struct NoFiles {}

impl FileOptions for NoFiles {}

/// `--html FILE` and `--open`.
#[derive(clap::Args)]
pub struct PageFile {
    /// Write the result as one HTML page with pictures, as weir report makes it; - is standard output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Show the page of --html in a browser
    #[arg(long, requires = "html")]
    open: bool,
}

impl FileOptions for PageFile {
    fn page(&self) -> Option<&PageFile> {
        Some(self)
    }
}

/// `--html FILE`, `--csv FILE` and `--markdown FILE`.
#[derive(clap::Args)]
pub struct TableFiles {
    #[command(flatten)]
    page: PageFile,

    /// Write the rows as CSV; - is standard output
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Write the table as Markdown; - is standard output
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

impl FileOptions for TableFiles {
    fn page(&self) -> Option<&PageFile> {
        Some(&self.page)
    }

    fn csv(&self) -> Option<&Path> {
        self.csv.as_deref()
    }

    fn markdown(&self) -> Option<&Path> {
        self.markdown.as_deref()
    }
}

impl<F: FileOptions> OutputOptions<F> {
    /// As [`OutputOptions::open`]. Reports an error, and returns the status of wrong usage for it.
    pub fn open_or_report(&self) -> Result<OutputFiles, ExitCode> {
        self.open().map_err(|error| {
            eprintln_lossy!("weir: {error}");
            ExitCode::from(USAGE)
        })
    }

    /// Opens the files that were named. A verb calls this before its work, so that a wrong name fails at once.
    pub fn open(&self) -> Result<OutputFiles, String> {
        let paths = [self.json.as_deref(), self.html(), self.files.csv(), self.files.markdown()];
        let [json, html, csv, markdown] = paths.map(OutputFile::open_optional);
        let html = html?.zip(self.html()).map(|(file, path)| HtmlFile {
            file,
            path: path.into(),
            shows: self.files.page().is_some_and(|page| page.open),
        });
        if html.as_ref().is_some_and(|html| html.shows && is_stdout(&html.path)) {
            return Err("--open needs a file: --html - goes to standard output".into());
        }
        Ok(OutputFiles {
            json: json?,
            html,
            csv: csv?,
            markdown: markdown?,
            uses_stdout: paths.into_iter().flatten().any(is_stdout),
            quiet: self.quiet,
        })
    }

    fn html(&self) -> Option<&Path> {
        self.files.page()?.html.as_deref()
    }

    /// Returns whether the document is written, as JSON or as a page.
    pub fn wants_document(&self) -> bool {
        self.json.is_some() || self.html().is_some()
    }

    /// Returns whether `--quiet` was given.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Returns the number of documents that go to standard output: of JSON and HTML.
    pub fn documents_on_stdout(&self) -> usize {
        [self.json.as_deref(), self.html()].into_iter().flatten().filter(|path| is_stdout(path)).count()
    }
}

/// The file of `--html`.
struct HtmlFile {
    file: OutputFile,
    path: PathBuf,
    shows: bool,
}

impl HtmlFile {
    /// Writes the page of a document, and shows it if the user asked for that.
    fn write(self, parts: &[impl AsRef<str>]) -> Result<(), String> {
        let text: String = parts.iter().map(AsRef::<str>::as_ref).collect();
        self.file.write(&page_file::page_of(&text, &self.path)?)?;
        if self.shows { page_file::show(&self.path) } else { Ok(()) }
    }
}

/// The files of the output options. Each file is written at most once.
pub struct OutputFiles {
    json: Option<OutputFile>,
    html: Option<HtmlFile>,
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

    /// Returns whether the document was asked for, as JSON or as a page, and is not written yet.
    pub fn wants_document(&self) -> bool {
        self.json.is_some() || self.html.is_some()
    }

    /// Returns whether a page was asked for and is not written yet.
    pub fn wants_page(&self) -> bool {
        self.html.is_some()
    }

    /// Prints the screen if [`Self::shows_screen`], and writes `document` as [`Self::write_document`] does, also if printing fails.
    /// Returns all errors as one.
    pub fn present<D: Serialize>(
        &mut self,
        screen: impl FnOnce() -> String,
        document: &D,
    ) -> Result<(), String> {
        joined([self.print(None, screen), self.write_document(document)])
    }

    /// Prints what was exported, or otherwise the screen if [`Self::shows_screen`].
    pub fn print(&self, exported: Option<String>, screen: impl FnOnce() -> String) -> Result<(), String> {
        match exported {
            Some(text) => console::print_screen(&text),
            None if self.shows_screen() => console::print_screen(&screen()),
            None => Ok(()),
        }
    }

    /// Ends a verb: prints and writes as [`Self::present`] does. Reports all errors. Returns [`FAILED`] after an error, or if `failed`.
    pub fn finish<D: Serialize>(
        &mut self,
        screen: impl FnOnce() -> String,
        document: &D,
        failed: bool,
    ) -> ExitCode {
        let status = if failed { ExitCode::from(FAILED) } else { ExitCode::SUCCESS };
        status_after(self.present(screen, document), status)
    }

    /// Writes `document` as JSON and as a page, as far as the options ask for it. Writes the one also if the other fails, and returns
    /// all errors as one.
    pub fn write_document<D: Serialize>(&mut self, document: &D) -> Result<(), String> {
        if !self.wants_document() {
            return Ok(());
        }
        self.write_document_parts(&[json_text(document)?])
    }

    /// Like [`Self::write_document`], with JSON that is already text: `parts`, one after the other.
    pub fn write_document_parts(&mut self, parts: &[impl AsRef<str> + AsRef<[u8]>]) -> Result<(), String> {
        let json = self.json.take().map_or(Ok(()), |file| file.write_parts(parts));
        joined([json, self.html.take().map_or(Ok(()), |html| html.write(parts))])
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

/// Returns the errors of all results as one, each on a line of its own, which begins as a message of weir does.
pub fn joined(results: impl IntoIterator<Item = Result<(), String>>) -> Result<(), String> {
    let errors: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\nweir: ")) }
}

/// Reports the errors of `written` and returns [`FAILED`] for them; returns `status` if there are none.
pub fn status_after(written: Result<(), String>, status: ExitCode) -> ExitCode {
    let Err(errors) = written else { return status };
    eprintln_lossy!("weir: {errors}");
    ExitCode::from(FAILED)
}

/// Returns `value` as JSON.
pub fn json_text<T: Serialize>(value: &T) -> Result<String, String> {
    weir_report::json::pretty(value).map_err(|error| format!("JSON: {error}"))
}

/// Returns weir's own command line, for documents that name it.
pub fn own_command() -> Vec<String> {
    let arguments = std::env::args_os().skip(1).map(weir_model::text_of);
    std::iter::once("weir".into()).chain(arguments).collect()
}
