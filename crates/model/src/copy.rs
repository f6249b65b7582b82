//! The result of `weir copy` (schema weir-copy/1).
//!
//! Field names are the interface (docs/schemas).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Value of [`CopyDocument::schema`].
pub const SCHEMA: &str = "weir-copy/1";

/// The files and bytes of one method.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodCount {
    /// Regular files, by the method that moved their last bytes.
    pub files: u64,
    /// Their bytes of data, without holes.
    pub bytes: u64,
}

/// The document that `weir copy --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct CopyDocument {
    /// [`SCHEMA`].
    pub schema: String,
    pub elapsed_s: f64,
    pub user_s: f64,
    pub system_s: f64,
    /// Seconds in fsync(2), fdatasync(2) and syncfs(2), added over the threads.
    pub sync_s: f64,
    /// Regular files whose content was copied.
    pub files: u64,
    pub directories: u64,
    pub symbolic_links: u64,
    pub hard_links: u64,
    pub special_files: u64,
    /// Existing targets that were kept.
    pub skipped: u64,
    /// Bytes of data that were copied.
    pub copied_bytes: u64,
    /// Bytes of an earlier run that `--resume` kept; 0 in the documents of older versions, which counted them as copied.
    #[serde(default)]
    pub kept_bytes: u64,
    /// Bytes whose blocks source and target share.
    pub shared_bytes: u64,
    pub hole_bytes: u64,
    pub methods: BTreeMap<String, MethodCount>,
    /// Calls that move data, find holes or make files durable.
    pub calls: BTreeMap<String, u64>,
    /// Attributes that the target cannot keep.
    pub dropped_attributes: u64,
    pub verified_bytes: u64,
    /// `none`, `data` or `full`.
    pub sync: String,
    /// Files that are durable.
    pub synced_files: u64,
    /// Bytes of targets in the page cache after `--cache drop`; null without it, or if the kernel cannot say it.
    pub cached_bytes: Option<u64>,
    pub errors: u64,
    /// A sentence: what a power cut now would cost.
    pub power_cut: String,
    /// The command line of weir; empty in the documents of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Machine and settings, by name; empty in the documents of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}
