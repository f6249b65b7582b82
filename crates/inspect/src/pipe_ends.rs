//! Finds the processes at the other ends of the pipes of one process.

use std::collections::HashMap;
use std::fs;

use weir_model::peek::PipePeer;
use weir_model::{StreamKind, Untrusted};
use weir_sys::open_files::fdinfo;
use weir_sys::proc;
use weir_walkers::StreamPreview;

use crate::peek::kind;

/// The most descriptors of one process, and of all processes, in which the other ends of pipes are searched: 50 ms and 200 ms here.
const MAX_DESCRIPTORS_OF_ONE: usize = 1 << 15;
const MAX_DESCRIPTORS: usize = 1 << 17;

/// The processes at both ends of the pipes of one process: PID and access mode (O_ACCMODE).
pub(crate) struct PipeEnds {
    by_pipe: HashMap<Untrusted, Vec<(u32, i32)>>,
    /// The descriptors of all processes were read.
    pub(crate) is_complete: bool,
}

impl PipeEnds {
    pub(crate) fn of(pid: u32, previews: &[StreamPreview]) -> PipeEnds {
        let mut pipe_ends: HashMap<Untrusted, Vec<(u32, i32)>> = HashMap::new();
        let mut paths = HashMap::new();
        // The link of the descriptor of a FIFO is its path.
        for fd in previews.iter().map(|one| one.buffer.fd).filter(|fd| kind(pid, *fd) == StreamKind::Pipe) {
            let Some(path) = proc::descriptor(pid, fd) else { continue };
            paths.extend(fdinfo(pid, fd).map(|info| ((info.mount, info.ino), path.clone())));
            pipe_ends.entry(path).or_default();
        }
        let others = if pipe_ends.is_empty() { Vec::new() } else { proc::numbers("/proc") };
        let mut left = MAX_DESCRIPTORS;
        let mut is_complete = others.is_empty() || !proc::hides_others();
        for other in others {
            let directory = format!("/proc/{other}/fd");
            let most = left.min(MAX_DESCRIPTORS_OF_ONE);
            let fds = proc::some_numbers(&directory, most);
            left -= fds.len();
            is_complete &= fds.len() < most && !(fds.is_empty() && is_denied(&directory));
            for fd in fds {
                let Some((path, access)) = pipe_end(&paths, other, fd as i32) else { continue };
                if let Some(ends) = pipe_ends.get_mut(&path) {
                    ends.push((other, access));
                }
            }
        }
        PipeEnds { by_pipe: pipe_ends, is_complete }
    }

    /// Returns the readers of a pipe that the process writes to, or the writers of one that it reads from.
    pub(crate) fn peers(&self, pid: u32, path: &Untrusted) -> Vec<PipePeer> {
        let Some(all) = self.by_pipe.get(path) else { return Vec::new() };
        let own_writes = all.iter().any(|end| end.0 == pid && end.1 != libc::O_RDONLY);
        // A FIFO can be open for both.
        let only_as_own = if own_writes { libc::O_WRONLY } else { libc::O_RDONLY };
        let mut pids: Vec<u32> =
            all.iter().filter(|end| end.1 != only_as_own && end.0 != pid).map(|end| end.0).collect();
        pids.dedup();
        pids.into_iter().map(|pid| PipePeer { pid, comm: proc::comm(pid) }).collect()
    }
}

fn is_denied(directory: &str) -> bool {
    fs::read_dir(directory).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

/// Returns the pipe to which a descriptor of any process leads, and its access mode (O_ACCMODE); None for other files. `paths`
/// has the pipes by mount and inode. The link of a descriptor can block for ever where its fdinfo does not.
fn pipe_end(paths: &HashMap<(u64, u64), Untrusted>, pid: u32, fd: i32) -> Option<(Untrusted, i32)> {
    let info = fdinfo(pid, fd)?;
    let path = match info.ino {
        0 => proc::descriptor(pid, fd)?,
        ino => paths.get(&(info.mount, ino))?.clone(),
    };
    Some((path, info.flags & libc::O_ACCMODE))
}
