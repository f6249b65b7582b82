//! Files that were written and then renamed, and the sync calls around the rename.

use std::collections::HashMap;

use weir_model::trace::{Call, EventKind, Op, Rename};
use weir_model::{Direction, SourceLanguage, Untrusted};

use crate::code_fix::{CodeFix, StreamObject, code_fix};
use crate::context::RuleContext;
use crate::flags::O_DSYNC;
use crate::language::is_interpreted;
use weir_model::shell_quoted;

/// A file that was written in this run and then renamed.
pub(crate) struct RenamedFile {
    /// The process that renamed the file.
    pub pid: u32,
    pub at_s: f64,
    /// The open file through which it was written.
    pub file: u32,
    /// The process that wrote it.
    pub writer: u32,
    /// The writer's descriptor, or -1 if its writes were not recorded.
    pub fd: i32,
    pub bytes: u64,
    /// The new path, absolute if that is known.
    pub to: Untrusted,
    /// The recording has a sync of the file that may have come before the rename. A write after the sync is not noticed.
    pub synced: bool,
    /// A sampling gap between the writes and the rename may hide a sync.
    pub unsure: bool,
    /// Whether another file had the new name; None if that is unknown.
    pub replaced: Option<bool>,
    /// Inode of the directory that has the new name, if known.
    pub directory: Option<u64>,
}

impl RuleContext<'_> {
    /// Returns every rename of a file that was written in this run, in order of time.
    pub fn renamed_files(&self) -> Vec<RenamedFile> {
        let mut written: HashMap<&str, Vec<u32>> = HashMap::new();
        for stream in self.streams(Direction::Out).filter(|stream| stream.bytes > 0) {
            if let Some(file) = self.file(stream.file) {
                written.entry(file_name(file.path.exact())).or_default().push(file.id);
            }
        }
        let mut renamed = Vec::new();
        for event in &self.recording.events {
            let EventKind::Call(call) = &event.kind else { continue };
            if let Some((from, _)) = renamed_paths(call) {
                let files = written.get(file_name(from)).map_or(&[][..], Vec::as_slice);
                let file = self.last_written(files, from, event.at_s);
                renamed.extend(file.map(|file| self.renamed_file(event.pid, event.at_s, file, call)));
            }
        }
        renamed
    }

    /// Returns whether the new name was removed later in this run, so that a power cut can do no lasting harm to it.
    pub fn is_temporary_name(&self, renamed: &RenamedFile) -> bool {
        let removed = self.removed_names.get(&renamed.to);
        removed.is_some_and(|&last_s| last_s > renamed.at_s)
    }

    /// Returns the open file among `files` that has this path and whose first use is the last one before a time.
    fn last_written(&self, files: &[u32], path: &str, at_s: f64) -> Option<u32> {
        let first_s =
            |id: u32| self.streams_on(id).iter().map(|stream| stream.first_s).fold(f64::INFINITY, f64::min);
        let named = files.iter().copied().filter(|&id| {
            self.file(id).is_some_and(|file| path_matches(file.path.exact(), path)) && first_s(id) <= at_s
        });
        named.max_by(|&a, &b| first_s(a).total_cmp(&first_s(b)))
    }

    fn renamed_file(&self, pid: u32, at_s: f64, id: u32, call: &Call) -> RenamedFile {
        let (from, to) = renamed_paths(call).unwrap_or_default();
        let outputs = || self.streams_on(id).iter().filter(|stream| stream.direction != Direction::In);
        let output = outputs().find(|stream| stream.bytes > 0);
        let path = self.file(id).map_or("", |file| file.path.exact());
        let writer = output.map_or(pid, |stream| stream.pid);
        let written_s = output.map_or(at_s, |stream| stream.first_s);
        RenamedFile {
            pid,
            at_s,
            file: id,
            writer,
            fd: output.map_or(-1, |stream| stream.fd),
            bytes: outputs().map(|stream| stream.bytes).sum(),
            to: new_path(path, from, to).into(),
            synced: self.data_synced(id, at_s),
            unsure: [pid, writer].into_iter().any(|pid| self.has_gap(pid, written_s, at_s)),
            replaced: call.rename.as_ref().and_then(|rename| rename.replaced),
            directory: call.rename.as_ref().and_then(|rename| rename.directory),
        }
    }

    /// Returns whether a file's data was synced before a time.
    fn data_synced(&self, id: u32, before_s: f64) -> bool {
        let by_flag = self.file(id).is_some_and(|file| file.flags & O_DSYNC != 0);
        let by_count =
            self.streams_on(id).iter().any(|stream| stream.syncs > 0 && stream.first_s <= before_s);
        by_flag || by_count || self.syncs_of(id).any(|sync| sync.at_s <= before_s)
    }

    /// Returns whether the directory that has the new name, or its whole file system, was synced after the rename.
    pub fn directory_synced(&self, renamed: &RenamedFile) -> bool {
        let path = directory(renamed.to.exact());
        let device = self.file(renamed.file).map(|file| file.dev);
        // The directory may have been opened by any path. It is on the same device as the file.
        let is_directory = |id: u32| {
            self.file(id).is_some_and(|file| {
                let by_inode = renamed.directory == Some(file.ino) && device == Some(file.dev);
                by_inode || file.path.exact().trim_end_matches('/') == path
            })
        };
        let by_call = self.syncs.iter().any(|sync| {
            sync.at_s >= renamed.at_s && (sync.is_of_all_files() || sync.file.is_some_and(is_directory))
        });
        let mut counted = self.directory_syncs.iter();
        by_call || counted.any(|&(last_s, file)| last_s >= renamed.at_s && is_directory(file))
    }
}

/// Returns the old and the new path of a rename that succeeded.
fn renamed_paths(call: &Call) -> Option<(&str, &str)> {
    let renames = matches!(call.op, Op::Rename | Op::Renameat | Op::Renameat2) && call.result == 0;
    match (call.rename.as_deref(), call.paths.as_slice()) {
        _ if !renames => None,
        (Some(Rename { from, to, .. }), _) => Some((from.exact(), to.exact())),
        (None, [from, to]) => Some((from.exact(), to.exact())),
        _ => None,
    }
}

/// Directories of installed programs, which a user does not change because of a finding.
const INSTALLED: &[&str] = &["/usr/bin/", "/usr/sbin/", "/usr/lib/", "/usr/libexec/", "/bin/", "/sbin/"];

/// A program, its option that makes it sync files, and whether the option does so for a path.
type SyncOption = (&'static str, &'static str, fn(&str) -> bool);

/// Options of installed programs that make them sync their files.
const SYNC_OPTIONS: &[SyncOption] = &[
    ("git", "git config core.fsync all", git_can_sync),
    ("rsync", "rsync --fsync", |_| true),
    ("dpkg", "leave out --force-unsafe-io", |_| true),
];

/// Returns whether `core.fsync=all` makes git sync a file: its objects, references and index, but no reflog, no config and
/// nothing that it can make again (git-config(1)).
fn git_can_sync(path: &str) -> bool {
    let has_own_copy = || path.contains("/logs/") || path.ends_with("/objects/info/packs");
    let is_reference = || path.contains("/refs/") || matches!(file_name(path), "HEAD" | "packed-refs");
    (path.contains("/objects/") || is_reference() || file_name(path) == "index") && !has_own_copy()
}

impl RuleContext<'_> {
    /// Returns whether one installed program both wrote and renamed the file, so that its authors chose not to sync. A sync can
    /// be added to a script, and between two programs that a script runs.
    pub fn is_installed_program(&self, renamed: &RenamedFile) -> bool {
        renamed.writer == renamed.pid && self.is_installed(renamed) && !self.writes_by_script(renamed)
    }

    /// Returns whether an installed program wrote the file and another process renamed it.
    fn is_written_by_tool(&self, renamed: &RenamedFile) -> bool {
        renamed.writer != renamed.pid && self.is_installed(renamed) && !self.writes_by_script(renamed)
    }

    fn is_installed(&self, renamed: &RenamedFile) -> bool {
        let image = self.image_at(renamed.writer, renamed.at_s).map(|(_, image)| image);
        image.is_some_and(|image| INSTALLED.iter().any(|start| image.exe.exact().starts_with(start)))
    }

    fn writes_by_script(&self, renamed: &RenamedFile) -> bool {
        is_interpreted(self.language(renamed.writer, renamed.at_s))
    }

    /// Returns the fix: code, or for an installed program its option and a sync(1) command that follows it.
    pub fn sync_fix(&self, renamed: &RenamedFile) -> String {
        let object = (renamed.fd, Some(renamed.file));
        let code = self.code_fix(renamed.writer, renamed.at_s, object, CodeFix::SyncRename).to_string();
        if !self.is_installed_program(renamed) {
            // A script starts an installed program that writes the file, and another that renames it.
            return match self.is_written_by_tool(renamed) {
                true => code_fix(SourceLanguage::Shell, CodeFix::SyncRename, StreamObject::File).to_string(),
                false => code,
            };
        }
        let path = renamed.to.exact();
        let command = format!("sync {} {}", shell_quoted(path), shell_quoted(directory(path)));
        outside_fix(self.sync_option(renamed), &command, &code)
    }

    /// Returns the fix for several files of installed programs. sync -f writes the whole file system.
    pub fn sync_fix_of_all<'r>(
        &self,
        first: &RenamedFile,
        all: impl Iterator<Item = &'r RenamedFile>,
    ) -> String {
        let object = (first.fd, Some(first.file));
        let code = self.code_fix(first.writer, first.at_s, object, CodeFix::SyncRename).to_string();
        let command = format!("sync -f {}", shell_quoted(directory(first.to.exact())));
        let option = self.sync_option(first);
        let same = all.map(|renamed| self.sync_option(renamed)).all(|other| other == option);
        outside_fix(option.filter(|_| same), &command, &code)
    }

    /// Returns the option that makes an installed program sync this file.
    fn sync_option(&self, renamed: &RenamedFile) -> Option<&'static str> {
        let (_, image) = self.image_at(renamed.writer, renamed.at_s)?;
        // The options sync file data only, so they do not help a file whose data was synced.
        let helps = |&&(name, _, syncs): &&SyncOption| {
            !renamed.synced && image.comm == name && syncs(renamed.to.exact())
        };
        SYNC_OPTIONS.iter().find(helps).map(|(_, option, _)| *option)
    }
}

fn outside_fix(option: Option<&str>, command: &str, code: &str) -> String {
    match option {
        Some(option) => format!("{option}; or afterwards {command}"),
        None => format!("{command} afterwards; in its code: {code}"),
    }
}

/// Returns the last component of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// Returns the directory part of a path.
pub(crate) fn directory(path: &str) -> &str {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", _)) => "/",
        Some((directory, _)) => directory,
        None => ".",
    }
}

/// Returns whether a path argument, which may be relative to any directory, can name an absolute path.
fn path_matches(path: &str, argument: &str) -> bool {
    let relative = argument.trim_start_matches("./");
    let prefix = || path.strip_suffix(relative);
    path == argument
        || !relative.starts_with('/') && prefix().is_some_and(|d| d.is_empty() || d.ends_with('/'))
}

/// Returns the absolute form of the new path of a rename, given that the old path `from` is `path` in absolute form.
fn new_path(path: &str, from: &str, to: &str) -> String {
    if to.starts_with('/') {
        return to.into();
    }
    let current = path.strip_suffix(from.trim_start_matches("./")).unwrap_or_default();
    format!("{current}{}", to.trim_start_matches("./"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_find_their_file() {
        assert!(
            path_matches("/d/tmp/1", "tmp/1") && path_matches("/d/a", "./a") && path_matches("/d/a", "/d/a")
        );
        assert!(!path_matches("/d/xa", "a") && !path_matches("/d/a", "/e/a"));
        assert_eq!(new_path("/d/tmp/1", "tmp/1", "new/1"), "/d/new/1");
        assert_eq!(
            (file_name("/a/b"), directory("/a/b"), directory("/a"), directory("a")),
            ("b", "/a", "/", ".")
        );
    }
}
