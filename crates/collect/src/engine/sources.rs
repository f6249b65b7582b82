//! The sources in the event loop: polled, read once each turn, removed at their end.

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::{Engine, Entry, SOURCES, epoll_error};
use crate::error::{Error, io_error};
use crate::source::{self, Source, SourceProgress};

impl Engine {
    pub(super) fn add(&mut self, source: Box<dyn Source>) -> Result<(), Error> {
        let is_connection = source.is_connection();
        let number = self.sources.insert(Entry { source, polled: false });
        match is_connection {
            true => self.connections += 1,
            false => self.others.push(number),
        }
        self.set_polled(number)
    }

    /// Appends what earlier collectors of the log left in spill files, before anything new.
    pub(super) fn take_left_spills(&mut self) -> Result<(), Error> {
        for mut source in source::find_left_spills(&self.collector.options) {
            if source.resume(&mut self.collector) == SourceProgress::Open {
                self.add(source)?;
            } else if let Some(intake) = source.intake() {
                self.collector.add_ended(intake.counts);
            }
        }
        // Only bytes in the log let the files go. A budget counts each write, so its next one has to do.
        if !matches!(self.collector.options.flush, crate::options::Flush::Budget(_)) {
            self.collector.sink.flush();
        }
        self.collector.remove_spent_files();
        Ok(())
    }

    /// Adds the descriptor of a source to the set, or removes it, as the source wants.
    fn set_polled(&mut self, number: usize) -> Result<(), Error> {
        let entry = &mut self.sources[number];
        let wanted = entry.source.wants_poll();
        let Some(fd) = entry.source.poll_fd().filter(|_| wanted != entry.polled) else { return Ok(()) };
        let changed = match wanted {
            true => epoll::add(&self.all, fd, EventData::new_u64(SOURCES + number as u64), EventFlags::IN),
            false => epoll::delete(&self.all, fd),
        };
        match changed {
            Ok(()) => entry.polled = wanted,
            Err(errno) if entry.source.is_connection() => self.end_unpolled(number, errno),
            Err(errno) => return Err(epoll_error("change", errno)),
        }
        Ok(())
    }

    /// Ends a connection whose descriptor the set does not take, because it would never be read.
    fn end_unpolled(&mut self, number: usize, errno: Errno) {
        let source = &mut self.sources[number].source;
        let name = source.intake().map_or("a connection", |intake| intake.name.as_str());
        let advice = "the connection is closed; raise fs.epoll.max_user_watches, or free memory";
        self.collector.messages.push(Error::call("epoll_ctl", name, &io_error(errno), advice).to_string());
        if source.finish(&mut self.collector) == SourceProgress::Ended {
            self.remove(number);
        }
    }

    pub(super) fn read_always_ready(&mut self) -> Result<(), Error> {
        if !self.reads_sources() {
            return Ok(());
        }
        let ready =
            self.others.iter().copied().filter(|&number| self.sources[number].source.is_always_ready());
        let ready: Vec<usize> = ready.collect();
        ready.into_iter().try_for_each(|number| self.read(number))
    }

    pub(super) fn read(&mut self, number: usize) -> Result<(), Error> {
        if !self.sources.contains(number) || !self.reads_sources() {
            return Ok(());
        }
        let mut added = Vec::new();
        let progress = self.sources[number].source.read(&mut self.collector, &mut added);
        self.after(number, progress)?;
        self.add_all(added)
    }

    pub(super) fn add_all(&mut self, added: Vec<Box<dyn Source>>) -> Result<(), Error> {
        for source in added {
            if source.is_connection() && self.connections >= self.collector.options.max_connections {
                let most = self.collector.options.max_connections;
                self.collector
                    .messages
                    .push(format!("a connection is refused: there are {most} (--max-connections)"));
                continue;
            }
            self.add(source)?;
        }
        Ok(())
    }

    pub(super) fn after(&mut self, number: usize, progress: SourceProgress) -> Result<(), Error> {
        match progress {
            SourceProgress::Open => self.set_polled(number),
            SourceProgress::Ended => {
                self.remove(number);
                Ok(())
            }
        }
    }

    pub(super) fn remove(&mut self, number: usize) {
        let entry = self.sources.remove(number);
        // Another descriptor can have the same open file, and would keep it in the set.
        if let Some(fd) = entry.source.poll_fd().filter(|_| entry.polled) {
            let _ = epoll::delete(&self.all, fd);
        }
        match entry.source.is_connection() {
            true => self.connections -= 1,
            false => self.others.retain(|&other| other != number),
        }
        if let Some(intake) = entry.source.intake() {
            self.collector.add_ended(intake.counts);
        }
    }

    /// Resumes all sources when the log can be written again.
    pub(super) fn resume_all(&mut self) -> Result<(), Error> {
        let numbers: Vec<usize> = self.sources.iter().map(|(number, _)| number).collect();
        for number in numbers {
            let progress = self.sources[number].source.resume(&mut self.collector);
            self.after(number, progress)?;
        }
        Ok(())
    }

    /// Returns the sources that may have a deadline. Connections have one only with some options, and there are many.
    pub(super) fn timed(&self) -> Box<dyn Iterator<Item = usize> + '_> {
        match (self.collector.options.idle, &self.collector.options.multiline) {
            (None, None) => Box::new(self.others.iter().copied()),
            _ => Box::new(self.sources.iter().map(|(number, _)| number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fd::{AsFd, BorrowedFd};

    use super::*;
    use crate::collector::Collector;
    use crate::intake::Intake;
    use crate::options::LogOptions;

    /// A source of a regular file, which epoll(7) refuses.
    struct Unpollable {
        file: std::fs::File,
        intake: Intake,
        is_connection: bool,
    }

    impl Source for Unpollable {
        fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
            Some(self.file.as_fd())
        }

        fn is_connection(&self) -> bool {
            self.is_connection
        }

        fn read(&mut self, _collector: &mut Collector, _added: &mut Vec<Box<dyn Source>>) -> SourceProgress {
            SourceProgress::Open
        }

        fn resume(&mut self, _collector: &mut Collector) -> SourceProgress {
            SourceProgress::Open
        }

        fn finish(&mut self, _collector: &mut Collector) -> SourceProgress {
            SourceProgress::Ended
        }

        fn intake(&self) -> Option<&Intake> {
            Some(&self.intake)
        }
    }

    #[test]
    fn a_connection_that_cannot_be_polled_ends_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let options = LogOptions::of_lines(&dir.path().join("log"));
        let source = |is_connection| -> Box<dyn Source> {
            let file = std::fs::File::create(dir.path().join("file")).expect("a file");
            Box::new(Unpollable { file, intake: Intake::new("s#1".into(), None, &options), is_connection })
        };
        let mut engine = Engine::open(options.clone()).expect("opened");
        engine.add_all(vec![source(true)]).expect("the collector goes on");
        assert!(engine.sources.is_empty() && engine.connections == 0);
        let messages = engine.take_messages().join("\n");
        assert!(messages.contains("epoll_ctl s#1: EPERM") && messages.contains("is closed"), "{messages}");
        assert!(engine.add(source(false)).is_err(), "a source that the user has named");
    }
}
