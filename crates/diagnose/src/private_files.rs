//! Files that only the process that opened them can reach: they have no name, and no other process has them open.

use weir_model::StreamKind;
use weir_model::trace::{Op, OpenFile};

use crate::context::RuleContext;
use crate::flags::O_TMPFILE;

impl RuleContext<'_> {
    /// Returns whether no process but the one that opened a file can read it at a time and later. No process waits for bytes that
    /// are pending for such a file, and the file is gone when the process ends.
    pub fn is_private(&self, file: u32, at_s: f64) -> bool {
        let Some(file) = self.file(file).filter(|file| file.kind == StreamKind::File) else { return false };
        file.opened_by.is_some_and(|pid| {
            let nameless = if file.flags & O_TMPFILE != 0 {
                !self.makes_links(pid)
            } else {
                self.removes_name(pid, file, at_s)
            };
            nameless && !self.has_other_user(file, pid)
        })
    }

    /// Returns whether a process gives a name to any open file by linkat(2): the paths of the call do not show to which.
    fn makes_links(&self, pid: u32) -> bool {
        let links = |op| matches!(op, Op::Link | Op::Linkat);
        self.calls(pid).iter().any(|timed| links(timed.call.op) && timed.call.result == 0)
    }

    /// Returns whether a process unlinks the file that it opened before a time.
    fn removes_name(&self, pid: u32, file: &OpenFile, at_s: f64) -> bool {
        let opens = |op: Op| op.opens() || op == Op::MemfdCreate;
        let calls = self.calls(pid);
        let opened = calls.iter().position(|timed| timed.call.file == Some(file.id) && opens(timed.call.op));
        let later = opened.map_or(&[][..], |opened| &calls[opened..]);
        later.iter().take_while(|timed| timed.at_s <= at_s).any(|timed| {
            let call = timed.call;
            let unlinks = matches!(call.op, Op::Unlink | Op::Unlinkat) && call.result == 0;
            unlinks && call.paths.first() == Some(&file.path)
        })
    }

    /// Returns whether another process reads or writes the file: it inherited the descriptor, or opened the file by its name.
    fn has_other_user(&self, file: &OpenFile, pid: u32) -> bool {
        let key = self.target_key(file.id);
        let streams = self.recording.counts.iter().filter(|stream| stream.pid != pid && stream.is_known());
        streams.into_iter().any(|stream| stream.file == file.id || self.target_key(stream.file) == key)
    }
}

#[cfg(test)]
mod tests {
    use weir_model::trace::{Exit, SnapshotMoment};

    use super::*;
    use crate::testing::*;

    const PATH: &str = "/tmp/tacXXXX";

    /// Returns the recording of a program that opens a file as descriptor 3, has bytes for it pending for two seconds, and is
    /// killed. `unlinks_s` is the time at which the program unlinks the file.
    fn waiting(flags: i32, unlinks_s: Option<f64>) -> RecordingBuilder {
        let mut builder = recording(3.0);
        let file = builder.file(PATH, File);
        builder.open_file(file).flags = flags;
        builder.call(0.0, 1, Op::Openat, -1, file, b"").result = 3;
        if let Some(at_s) = unlinks_s {
            let call = builder.call(at_s, 1, Op::Unlink, -1, file, b"");
            (call.file, call.paths) = (None, vec![PATH.into()]);
        }
        for quarter in 0..8 {
            let at_s = 0.2 + f64::from(quarter) * 0.25;
            builder.snapshot_in(at_s, 1, SnapshotMoment::Sample, "read", &[pending(3, b"line 1\n")]);
        }
        builder.snapshot(2.9, 1, SnapshotMoment::Signal, &[pending(3, b"line 1\n")]);
        builder.root().exit = Some(Exit::Signal(9));
        builder
    }

    const IDS: [&str; 2] = ["stuck-output", "lost-at-kill"];

    #[test]
    fn no_process_waits_for_the_bytes_of_a_private_file() {
        let (excl, tmpfile) = (0o302, O_TMPFILE | 2);
        for builder in [waiting(excl, Some(0.1)), waiting(tmpfile, None)] {
            IDS.iter().for_each(|id| builder.no_finding(id));
        }
        for (why, builder) in [
            ("it has its name", waiting(excl, None)),
            ("it loses its name at the end", waiting(excl, Some(2.95))),
        ] {
            IDS.iter().for_each(|id| assert_eq!(builder.findings(id).len(), 1, "{why}: {id}"));
        }
    }

    #[test]
    fn a_nameless_file_that_others_use_is_not_private() {
        let mut read_by_child = waiting(0o302, Some(0.1));
        read_by_child.fork(0.15, 2);
        read_by_child.stream(2, 0, 0, In, 1, 0);
        let mut named_later = waiting(O_TMPFILE | 2, None);
        named_later.call(2.95, 1, Op::Linkat, -1, 0, b"").file = None;
        for builder in [read_by_child, named_later] {
            IDS.iter().for_each(|id| assert_eq!(builder.findings(id).len(), 1, "{id}"));
        }
    }
}
