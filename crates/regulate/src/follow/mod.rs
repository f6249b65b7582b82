//! TEMPORARY.
pub(crate) mod signals;
use std::path::PathBuf;
use std::time::Duration;
use weir_model::trace::Exit;
use weir_probe::launch::Gated;
#[derive(Debug, Clone, Default)]
pub struct Wishes { pub rescue: bool, pub max_delay: Option<Duration>, pub fix_fork: bool, pub save_in: Option<PathBuf> }
#[derive(Debug, Clone)]
pub struct Outcome { pub exit: Exit, pub rescued: Vec<Rescued>, pub emitted_bytes: u64, pub unable: Vec<String> }
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rescued { pub pid: u32, pub comm: String, pub fd: i32, pub target: String, pub bytes: u64, pub exit: Exit, pub saved: Option<Saved> }
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved { pub path: PathBuf, pub why: String }
#[derive(Debug, thiserror::Error)]
pub enum Error { #[error(transparent)] Probe(#[from] weir_probe::Error), #[error("the command cannot be followed: {0}")] Refused(String) }
pub fn unable(_: &Gated, _: &Wishes) -> Vec<String> { Vec::new() }
pub fn follow(gated: Gated, _: &Wishes, _: Vec<u8>) -> Result<Outcome, Error> { let _ = gated; Err(Error::Refused("temporary".into())) }
