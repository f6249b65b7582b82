//! Files that were written and then renamed, and what was synced around it.

use std::collections::HashMap;

use weir_model::Direction;
use weir_model::trace::Op;

use crate::context::Context;
use crate::flags::O_DSYNC;

/// A file that was written in this run and renamed.
pub(crate) struct Renamed {
    pub pid: u32,
    pub at_s: f64,
    /// The open file that it was written through, by whom and where.
    pub file: u32,
    pub writer: u32,
    pub fd: i32,
    pub bytes: u64,
    /// Its new path, absolute where that is known.
    pub to: String,
    /// Its data was synced between the last write and the rename.
    pub synced: bool,
}

impl Context<'_> {
    /// Every rename of a file that was written in this run, in order of time.
    pub fn renamed(&self) -> Vec<Renamed> {
        let mut written: HashMap<&str, Vec<u32>> = HashMap::new();
        for flow in self.toward(Direction::Out).filter(|flow| flow.bytes > 0) {
            if let Some(file) = self.file(flow.file) {
                written.entry(base(&file.path)).or_default().push(file.id);
            }
        }
        let mut all = Vec::new();
        for event in &self.recording.events {
            let weir_model::trace::What::Call(call) = &event.what else { continue };
            let renames = matches!(call.op, Op::Rename | Op::Renameat | Op::Renameat2) && call.result == 0;
            if let ([from, to], true) = (call.paths.as_slice(), renames) {
                let files = written.get(base(from)).map_or(&[][..], Vec::as_slice);
                all.extend(
                    self.last_written(files, from, event.at_s)
                        .map(|file| self.judge_rename(event.pid, event.at_s, file, from, to)),
                );
            }
        }
        all
    }

    /// The open file among these that this path names and that was written last before that time.
    fn last_written(&self, files: &[u32], from: &str, at_s: f64) -> Option<u32> {
        let first = |id: u32| self.flows_on(id).iter().map(|flow| flow.first_s).fold(f64::INFINITY, f64::min);
        let named = files
            .iter()
            .copied()
            .filter(|&id| self.file(id).is_some_and(|file| names(&file.path, from)) && first(id) <= at_s);
        named.max_by(|&a, &b| first(a).total_cmp(&first(b)))
    }

    fn judge_rename(&self, pid: u32, at_s: f64, id: u32, from: &str, to: &str) -> Renamed {
        let out = self.flows_on(id).iter().find(|flow| flow.direction != Direction::In && flow.bytes > 0);
        let path = self.file(id).map_or("", |file| file.path.as_str());
        let bytes = self
            .flows_on(id)
            .iter()
            .filter(|flow| flow.direction != Direction::In)
            .map(|flow| flow.bytes)
            .sum();
        Renamed {
            pid,
            at_s,
            file: id,
            writer: out.map_or(pid, |flow| flow.pid),
            fd: out.map_or(-1, |flow| flow.fd),
            bytes,
            to: absolute(path, from, to),
            synced: self.data_synced(id, at_s),
        }
    }

    /// Whether a file's data was on its way to the device for sure before that time.
    fn data_synced(&self, id: u32, before_s: f64) -> bool {
        let target = self.target(id);
        let same = |other: u32| other == id || self.target(other) == target;
        let by_flag = self.file(id).is_some_and(|file| file.flags & O_DSYNC != 0);
        let by_count = self.flows_on(id).iter().any(|flow| flow.syncs > 0 && flow.first_s <= before_s);
        let by_call = || {
            self.syncs.iter().any(|&(at_s, op, file)| {
                let all = matches!(op, Op::Sync | Op::Syncfs);
                at_s <= before_s && (all || file.is_some_and(same))
            })
        };
        by_flag || by_count || by_call()
    }

    /// Whether a directory, or everything, was synced after that time.
    pub fn directory_synced(&self, directory: &str, after_s: f64) -> bool {
        self.syncs.iter().any(|&(at_s, op, file)| {
            let path = file.and_then(|id| self.file(id)).map(|file| file.path.trim_end_matches('/'));
            at_s >= after_s && (matches!(op, Op::Sync | Op::Syncfs) || path == Some(directory))
        })
    }
}

/// The last component of a path.
pub(crate) fn base(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// What a path is in.
pub(crate) fn directory(path: &str) -> &str {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", _)) => "/",
        Some((directory, _)) => directory,
        None => ".",
    }
}

/// Whether an absolute path is what an argument, perhaps relative to some directory, names.
fn names(path: &str, argument: &str) -> bool {
    let relative = argument.trim_start_matches("./");
    path == argument
        || !relative.starts_with('/')
            && path.strip_suffix(relative).is_some_and(|d| d.is_empty() || d.ends_with('/'))
}

/// Where `to` is, when `from`, seen from the same directory, is `path`.
fn absolute(path: &str, from: &str, to: &str) -> String {
    if to.starts_with('/') {
        return to.into();
    }
    let here = path.strip_suffix(from.trim_start_matches("./")).unwrap_or_default();
    format!("{here}{}", to.trim_start_matches("./"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_find_their_file() {
        assert!(names("/d/tmp/1", "tmp/1") && names("/d/a", "./a") && names("/d/a", "/d/a"));
        assert!(!names("/d/xa", "a") && !names("/d/a", "/e/a"));
        assert_eq!(absolute("/d/tmp/1", "tmp/1", "new/1"), "/d/new/1");
        assert_eq!((base("/a/b"), directory("/a/b"), directory("/a"), directory("a")), ("b", "/a", "/", "."));
    }
}
