//! Where a verb's result goes: the screen, and a file of --json.

use std::path::PathBuf;

use crate::export::{Export, json};

/// The two options that verbs with a result have; each says in its `mut_arg` what the document is.
#[derive(clap::Args)]
pub struct Output {
    /// Write the result as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// No screen: only the file and errors
    #[arg(long, short)]
    quiet: bool,
}

impl Output {
    /// Opens the file before the work, so that a wrong name costs none.
    pub fn open(&self) -> Result<Opened, String> {
        let json = self.json.as_deref().map(Export::open).transpose()?;
        let to_stdout = json.as_ref().is_some_and(Export::is_stdout);
        Ok(Opened { json, quiet: self.quiet, to_stdout })
    }

    /// Nothing is to be said.
    pub fn quiet(&self) -> bool {
        self.quiet
    }

    /// The document takes standard output.
    pub fn to_stdout(&self) -> bool {
        self.json.as_deref().is_some_and(|path| path.as_os_str() == "-")
    }
}

/// The file is open.
pub struct Opened {
    json: Option<Export>,
    quiet: bool,
    to_stdout: bool,
}

impl Opened {
    /// Whether standard output is the screen's, and one is wanted.
    pub fn has_screen(&self) -> bool {
        !self.quiet && !self.to_stdout
    }

    /// The document takes standard output.
    pub fn to_stdout(&self) -> bool {
        self.to_stdout
    }

    /// Whether a document is wanted, and not written yet.
    pub fn has_file(&self) -> bool {
        self.json.is_some()
    }

    /// Writes the document, if one is wanted.
    pub fn write<T: serde::Serialize>(&mut self, document: &T) -> Result<(), String> {
        self.json.take().map_or(Ok(()), |export| json(document).and_then(|text| export.write(&text)))
    }

    /// Writes a document that is text already.
    pub fn write_parts(&mut self, parts: &[impl AsRef<str>]) -> Result<(), String> {
        self.json.take().map_or(Ok(()), |export| export.write_parts(parts))
    }
}
