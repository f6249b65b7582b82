//! The words for a buffer: the object of the program that holds it, where its type is known, and the program.

use weir_model::trace::{Buffer, RuntimeId};

use crate::context::RuleContext;
use crate::flags::{O_RDWR, O_WRONLY};

impl RuleContext<'_> {
    /// Returns the words for a buffer at a time, for example `the buffer of a std::ofstream of prog (7)`.
    pub fn buffer_name(&self, buffer: &Buffer, pid: u32, at_s: f64) -> String {
        let program = self.name_at(pid, at_s);
        match self.object_of(buffer, pid, at_s) {
            Some(object) => format!("the buffer of {object} of {program}"),
            None => format!("the buffer of {program}"),
        }
    }

    /// Returns the type of the object, if the runtime has one for such files. None for Rust below descriptor 3: the buffer can be that of
    /// stdout itself.
    fn object_of(&self, buffer: &Buffer, pid: u32, at_s: f64) -> Option<&'static str> {
        let flags =
            self.file_at(pid, buffer.fd, at_s).and_then(|file| self.file(file)).map(|file| file.flags);
        match (buffer.walker, buffer.fd) {
            (RuntimeId::CPP, 1) => Some("std::cout"),
            (RuntimeId::CPP, 2) => Some("std::clog"),
            (RuntimeId::CPP, _) if flags.is_some_and(|flags| flags & (O_WRONLY | O_RDWR) == O_RDWR) => {
                Some("a std::fstream")
            }
            (RuntimeId::CPP, _) => Some("a std::ofstream"),
            (RuntimeId::GO, _) => Some("a bufio.Writer"),
            (RuntimeId::RUST, 3..) => Some("a BufWriter"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_model::trace::{RuntimeId, SnapshotMoment};

    use crate::testing::*;

    #[test]
    fn the_object_is_named_where_its_type_is_known() {
        let lost = |walker: RuntimeId, fd: i32, flags: i32| {
            let mut builder = recording(1.0);
            let file = builder.file("/d/log", File);
            builder.open_file(file).flags = flags;
            builder.call(0.1, 1, weir_model::trace::Op::Openat, -1, file, b"").result = fd.into();
            let buffer = weir_model::trace::Buffer { walker, ..pending(fd, b"line\n") };
            builder.snapshot(0.5, 1, SnapshotMoment::Signal, &[buffer]);
            builder.root().exit = Some(weir_model::trace::Exit::Signal(9));
            builder.root().ended_s = Some(0.5);
            builder.finding("lost-at-kill").why
        };
        for (walker, fd, flags, words) in [
            (RuntimeId::CPP, 3, 1, "in the buffer of a std::ofstream of prog (1)"),
            (RuntimeId::CPP, 3, 2, "in the buffer of a std::fstream of prog (1)"),
            (RuntimeId::CPP, 1, 1, "in the buffer of std::cout of prog (1)"),
            (RuntimeId::GO, 5, 1, "in the buffer of a bufio.Writer of prog (1)"),
            (RuntimeId::RUST, 5, 1, "in the buffer of a BufWriter of prog (1)"),
            (RuntimeId::RUST, 1, 1, "in the buffer of prog (1)"),
            (RuntimeId::GLIBC, 3, 1, "in the buffer of prog (1)"),
        ] {
            let why = lost(walker, fd, flags);
            assert!(why.contains(words), "{why}");
        }
    }
}
