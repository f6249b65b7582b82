//! Files that were written and then renamed, and what was synced around it.

use std::collections::HashMap;

use weir_model::Direction;
use weir_model::trace::{Call, EventKind, Op, Rename};

use crate::context::Context;
use crate::fix::Topic;
use crate::flags::O_DSYNC;
use crate::language::Language;
use crate::words::quoted;

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
    /// Whether that was so cannot be told: there was a time in between in which nobody looked.
    pub unsure: bool,
    /// The new name was another file's; None: not known.
    pub replaced: Option<bool>,
    /// Inode of the directory that the new name is in, if known.
    pub directory: Option<u64>,
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
            let EventKind::Call(call) = &event.kind else { continue };
            if let Some((from, _)) = names_of(call) {
                let files = written.get(base(from)).map_or(&[][..], Vec::as_slice);
                let file = self.last_written(files, from, event.at_s);
                all.extend(file.map(|file| self.judge_rename(event.pid, event.at_s, file, call)));
            }
        }
        all
    }

    /// Whether the new name was given up again in this run: what is only there for a moment no power cut can harm.
    pub fn is_passing(&self, renamed: &Renamed) -> bool {
        let given_up = self.given_up.get(renamed.to.as_str());
        given_up.is_some_and(|&last_s| last_s > renamed.at_s)
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

    fn judge_rename(&self, pid: u32, at_s: f64, id: u32, call: &Call) -> Renamed {
        let (from, to) = names_of(call).unwrap_or_default();
        let out = self.flows_on(id).iter().find(|flow| flow.direction != Direction::In && flow.bytes > 0);
        let path = self.file(id).map_or("", |file| file.path.as_str());
        let bytes = self
            .flows_on(id)
            .iter()
            .filter(|flow| flow.direction != Direction::In)
            .map(|flow| flow.bytes)
            .sum();
        let writer = out.map_or(pid, |flow| flow.pid);
        let written_s = out.map_or(at_s, |flow| flow.first_s);
        Renamed {
            pid,
            at_s,
            file: id,
            writer,
            unsure: [pid, writer].into_iter().any(|who| self.looked_away(who, written_s, at_s)),
            fd: out.map_or(-1, |flow| flow.fd),
            bytes,
            to: absolute(path, from, to),
            synced: self.data_synced(id, at_s),
            replaced: call.rename.as_ref().and_then(|rename| rename.replaced),
            directory: call.rename.as_ref().and_then(|rename| rename.directory),
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

    /// Whether the directory that a file was renamed into, or everything, was synced afterwards.
    pub fn directory_synced(&self, renamed: &Renamed) -> bool {
        let path = directory(&renamed.to);
        let device = self.file(renamed.file).map(|file| file.dev);
        // It may have been opened by any of its paths. A file is on the device of its directory.
        let is = |id: u32| {
            self.file(id).is_some_and(|file| {
                let by_number = renamed.directory == Some(file.ino) && device == Some(file.dev);
                by_number || file.path.trim_end_matches('/') == path
            })
        };
        let by_call = self.syncs.iter().any(|&(at_s, op, file)| {
            at_s >= renamed.at_s && (matches!(op, Op::Sync | Op::Syncfs) || file.is_some_and(is))
        });
        by_call || self.directory_syncs.iter().any(|&(last_s, file)| last_s >= renamed.at_s && is(file))
    }
}

/// The old and the new name of a rename that was done.
fn names_of(call: &Call) -> Option<(&str, &str)> {
    let renames = matches!(call.op, Op::Rename | Op::Renameat | Op::Renameat2) && call.result == 0;
    match (call.rename.as_deref(), call.paths.as_slice()) {
        _ if !renames => None,
        (Some(Rename { from, to, .. }), _) => Some((from, to)),
        (None, [from, to]) => Some((from, to)),
        _ => None,
    }
}

/// Where programs of the system are, which nobody changes for this.
const INSTALLED: &[&str] = &["/usr/bin/", "/usr/sbin/", "/usr/lib/", "/usr/libexec/", "/bin/", "/sbin/"];

/// What programs of their own have for it.
const SWITCHES: &[(&str, &str)] = &[
    ("git", "git config core.fsync all"),
    ("rsync", "rsync --fsync"),
    ("dpkg", "leave out --force-unsafe-io"),
];

impl Context<'_> {
    /// Whether a program of the system has both written and renamed the file: its makers decided what it syncs. Between
    /// two programs that a script runs, and in a language's script, a sync has its place.
    pub fn is_decided(&self, renamed: &Renamed) -> bool {
        let image = self.image_at(renamed.writer, renamed.at_s).map(|(_, image)| image);
        let installed = image.is_some_and(|image| INSTALLED.iter().any(|start| image.exe.starts_with(start)));
        installed
            && self.language(renamed.writer, renamed.at_s) == Language::C
            && renamed.writer == renamed.pid
    }

    /// Code for who can change the program; else what can be done from outside.
    pub fn sync_cure(&self, renamed: &Renamed) -> String {
        let code = self.code(renamed.writer, renamed.at_s, Topic::SyncRename);
        if !self.is_decided(renamed) {
            return code;
        }
        let image = self.image_at(renamed.writer, renamed.at_s).map(|(_, image)| image);
        // Those are about the data: of directories they know nothing.
        let switch = SWITCHES
            .iter()
            .filter(|_| !renamed.synced)
            .find(|(name, _)| image.is_some_and(|image| image.comm == *name));
        let behind = format!("sync {} {} behind it", quoted(&renamed.to), quoted(directory(&renamed.to)));
        match switch {
            Some((_, switch)) => format!("{switch}; or {behind}"),
            None => format!("{behind}; in its code: {code}"),
        }
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
