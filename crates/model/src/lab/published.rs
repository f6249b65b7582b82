//! Published tables beside this machine's figures.

use serde::{Deserialize, Serialize};

/// A published table beside this machine's figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedTable {
    /// Identifier, for example `tlpi-13-1`.
    pub id: String,
    /// Title of the table.
    pub title: String,
    /// Book, paper or page that published it.
    pub source: String,
    /// System that the published figures were measured on.
    pub setting: String,
    /// How the figures of this machine were measured.
    pub here: String,
    /// One entry for each figure of each row.
    pub rows: Vec<PublishedFigure>,
}

/// One figure of a published table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedFigure {
    /// Label of the row: `64 B`, `64 B, full`, `tr2u, file`.
    pub row: String,
    /// Quantity: `elapsed`, `cpu`, `writes` …
    pub figure: String,
    /// Unit of `published` and `ours`.
    pub unit: String,
    /// Published value; `None` where the source has none.
    pub published: Option<f64>,
    /// Value of this machine; `None` if the run did not measure it.
    pub ours: Option<f64>,
    /// Number of runs behind `ours`.
    pub runs: Option<u64>,
    /// `ours` was measured on part of the bytes and scaled up.
    pub scaled: bool,
}
