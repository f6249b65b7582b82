//! Copies files, trees and streams: the engine of `weir copy`.

mod backup;
mod buffer;
mod context;
mod control;
mod directory;
mod durability;
mod engine;
mod entry;
mod error;
mod estimate;
mod file;
mod file_stat;
mod journal;
mod links;
mod metadata;
mod node;
mod open_target;
mod options;
mod parents;
mod quote;
mod resume;
mod same_file;
mod session;
mod small_file;
mod special;
mod stream_file;
mod sync_ledger;
mod tally;
mod target;
mod tree;
mod tree_marker;
mod undivided;
mod verify;
mod volatile;

pub use context::CopyReporter;
pub use control::{CopyControl, CopyPhase};
pub use engine::{ContentResult, Fallback, TrialResult};
pub use error::CopyError;
pub use estimate::estimate_bytes;
pub use options::{
    BackupNames, CopyMethod, CopyOptions, CopySync, Existing, FollowLinks, HoleSearch, Preserved, TargetKind,
    Tristate,
};
pub use quote::quote;
pub use session::{CopyDestination, CopySummary, copy};
pub use tally::CopyTally;
pub use tree_marker::TreeMarker;
pub use verify::Verified;
pub use volatile::is_volatile_path;
