//! Processes, mount points and files that did not answer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use super::answers::Operation;
use super::{ForeignReads, HAS_SILENT, MAX_SILENT_PATHS, Silent, with_reads};
use crate::process_identity::ProcessIdentity;
use crate::served_mounts::ServedMounts;
use crate::{expendable, proc};

/// Returns whether a process answers. Most of its files in /proc do not while it holds the lock that execve(2) takes, and
/// execve(2) holds it until every file with the close-on-exec flag is closed. A server can keep it there for ever.
pub(crate) fn answers(pid: u32) -> bool {
    if expendable::is_child() || pid == std::process::id() {
        return true;
    }
    if HAS_SILENT.load(Relaxed) && with_reads(|reads| reads.knows_silent(pid)) {
        return false;
    }
    let path = format!("/proc/{pid}/stat");
    let words = [path.len() as u64, 1, 0, 0];
    let ask =
        |reads: &mut ForeignReads| Some(reads.ask(Operation::Beginning, words, path.as_bytes())?.map(|_| ()));
    let is_silent = with_reads(ask) == Some(Err(Silent));
    if is_silent {
        note_silent(pid);
    }
    !is_silent
}

pub(super) fn is_silent(tid: u32) -> bool {
    let pid = proc::process_of(tid).unwrap_or(tid);
    with_reads(|reads| reads.knows_silent(pid))
}

pub(super) fn note_silent(pid: u32) {
    let (process, text) = (ProcessIdentity::of(pid), expendable::no_answer_text(pid));
    with_reads(|reads| reads.silent.push((process, text)));
    HAS_SILENT.store(true, Relaxed);
}

/// Returns a sentence about each process of which a file or memory did not answer, in order of their PIDs.
pub(crate) fn silent_processes() -> Vec<String> {
    let silent = with_reads(|reads| reads.silent.clone()).into_iter();
    let by_pid: BTreeSet<_> = silent.map(|(process, text)| (process.pid(), text)).collect();
    by_pid.into_iter().map(|(_, text)| text).collect()
}

/// Returns a sentence about each mount point, or path if no mount point is known, whose files did not answer.
pub(crate) fn silent_files() -> Vec<String> {
    let paths = with_reads(|reads| reads.silent_paths.iter().cloned().collect::<BTreeSet<_>>());
    let sentence = |path: PathBuf| {
        let path = weir_model::Untrusted::from(&*path.to_string_lossy());
        format!(
            "{path} does not answer: the server of its file system (FUSE, NFS) is silent, so the status of its files is unknown"
        )
    };
    paths.into_iter().map(sentence).collect()
}

/// Returns the process that a path of /proc names.
fn process_in(path: &Path) -> Option<u32> {
    path.strip_prefix("/proc").ok()?.components().next()?.as_os_str().to_str()?.parse().ok()
}

/// Returns the process in whose mount namespace a path is, and the path there: for /proc/PID/root/…, and for the links
/// /proc/PID/exe, /proc/PID/map_files/… and /proc/PID/fd/…. Another path is one of this process. Only asks the kernel.
fn process_and_path(path: &Path) -> (u32, PathBuf) {
    let Some(pid) = process_in(path) else { return (std::process::id(), path.to_path_buf()) };
    let below_root = path.strip_prefix(format!("/proc/{pid}/root")).map(|path| Path::new("/").join(path));
    let inside = below_root.unwrap_or_else(|_| match std::fs::read_link(path) {
        Ok(target) => target,
        Err(_) => path.to_path_buf(),
    });
    (pid, inside)
}

/// Returns the path under which a path that did not answer is kept: its mount point if `served_mounts` knows one, else itself.
fn silent_key(path: &Path) -> PathBuf {
    let (pid, inside) = process_and_path(path);
    let point = ServedMounts::of(pid).point_of(&inside).map(Path::to_path_buf);
    point.unwrap_or(inside)
}

pub(super) fn is_silent_path(path: &Path) -> bool {
    if process_in(path).is_some_and(|pid| with_reads(|reads| reads.knows_silent(pid))) {
        return true;
    }
    let key = silent_key(path);
    with_reads(|reads| reads.silent_paths.contains(&key) || reads.silent_paths.len() >= MAX_SILENT_PATHS)
}

pub(super) fn note_silent_path(path: &Path) {
    let process = process_in(path).filter(|pid| *pid != std::process::id());
    // The links of a process that does not answer cannot be read either.
    if process.is_some_and(|pid| !answers(pid)) {
        return;
    }
    let key = silent_key(path);
    with_reads(|reads| reads.silent_paths.insert(key));
    HAS_SILENT.store(true, Relaxed);
    if let Some(pid) = process {
        note_silent(pid);
    }
}
