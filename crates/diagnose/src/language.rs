//! The source language of a process, and the object in its code that a stream belongs to. They select the code of a fix and are
//! never evidence of a finding.

use std::collections::HashSet;

use weir_model::trace::{Buffer, CallSite, Image, RuntimeId};
use weir_model::{SourceLanguage, StreamKind};

use crate::code_fix::{CodeFix, CodeText, StreamObject, code_fix, logger_flush};
use crate::context::RuleContext;
use crate::tool_options::{python_option, stdbuf_option, tool_option};

impl RuleContext<'_> {
    /// Returns the language of the image that a process ran at a time, which the recording has from the table of runtimes.
    pub fn language(&self, pid: u32, at_s: f64) -> SourceLanguage {
        let image = self.image_at(pid, at_s).map(|(_, image)| image);
        image.and_then(|image| image.language).unwrap_or(SourceLanguage::Other)
    }

    /// Returns a fix as code: in the language of the image that a process ran at a time, and for the object that its
    /// descriptor belongs to.
    /// An installed tool whose option does the same gets that option.
    pub fn code_fix(&self, pid: u32, at_s: f64, (fd, file): (i32, Option<u32>), fix: CodeFix) -> CodeText {
        let image = self.image_at(pid, at_s).map(|(_, image)| image);
        let stdbuf = || stdbuf_option(self.previous_image(pid, at_s)?, fd, fix);
        let own = |image| tool_option(image, fix).or_else(|| python_option(image, fd, fix));
        if let Some(option) = image.and_then(own).or_else(stdbuf) {
            return CodeText { code: "", note: option };
        }
        let object = self.stream_object(fd, file);
        if let Some(flush) = image.and_then(|image| self.logger_fix(image, pid, (fd, object), fix)) {
            return flush;
        }
        let language = match self.language(pid, at_s) {
            // A FILE of a C++ program is C's.
            SourceLanguage::Cpp if object == StreamObject::File && self.has_stdio_stream(pid, fd) => {
                SourceLanguage::C
            }
            language => language,
        };
        code_fix(language, fix, object)
    }

    /// Returns the flush of a buffer, without line buffering if its pending text has no newline at its end.
    pub fn flush_fix(&self, pid: u32, at_s: f64, file: Option<u32>, buffer: &Buffer) -> CodeText {
        let flush = self.code_fix(pid, at_s, (buffer.fd, file), CodeFix::Flush);
        let is_whole = buffer.pending.len() as u64 == buffer.pending_bytes;
        match is_whole && !buffer.pending.ends_with(b"\n") {
            true => flush.without_line_buffering(),
            false => flush,
        }
    }

    /// Returns the flush of a logger if it wrote to the descriptor, or may have written to it.
    fn logger_fix(
        &self,
        image: &Image,
        pid: u32,
        (fd, object): (i32, StreamObject),
        fix: CodeFix,
    ) -> Option<CodeText> {
        let logger = image.logger.filter(|_| fix == CodeFix::Flush && object == StreamObject::File)?;
        if !self.has_stdio_stream(pid, fd) {
            return None;
        }
        let sites = self.write_sites_of(pid, fd);
        let is_of_logger = |site: &CallSite| {
            let functions = site.frames.iter().filter_map(|frame| frame.function.as_ref());
            functions.into_iter().any(|function| function.exact().starts_with(logger.namespace()))
        };
        // A stack without a symbol does not show which code wrote.
        let names =
            |site: &&CallSite| site.frames.iter().any(|frame| !frame.library && frame.function.is_some());
        match sites.iter().any(|site| is_of_logger(site)) {
            true => logger_flush(logger, true),
            false if sites.iter().any(names) => None,
            false => logger_flush(logger, false),
        }
    }

    /// Returns the call sites that wrote into the streams of a descriptor.
    fn write_sites_of(&self, pid: u32, fd: i32) -> Vec<&CallSite> {
        let buffers = self.snapshots(pid).iter().flat_map(|snapshot| snapshot.buffers);
        let streams: HashSet<u64> =
            buffers.filter(|buffer| buffer.fd == fd).map(|buffer| buffer.address).collect();
        let sites = self.recording.write_sites.iter();
        sites
            .filter(|site| site.pid == pid && streams.contains(&site.stream))
            .map(|site| &site.call_site)
            .collect()
    }

    /// Returns the image that executed the image that a process ran at a time.
    fn previous_image(&self, pid: u32, at_s: f64) -> Option<&Image> {
        let (number, _) = self.image_at(pid, at_s)?;
        self.process(pid)?.images.get(number.checked_sub(1)?)
    }

    fn stream_object(&self, fd: i32, file: Option<u32>) -> StreamObject {
        match (fd, file.map_or(StreamKind::File, |file| self.kind(file))) {
            (0, _) => StreamObject::Stdin,
            (1, _) => StreamObject::Stdout,
            (2, _) => StreamObject::Stderr,
            (_, StreamKind::Pipe) => StreamObject::Pipe,
            (_, StreamKind::Socket) => StreamObject::Socket,
            _ => StreamObject::File,
        }
    }

    /// Returns whether a stream of the C library was seen on a descriptor.
    fn has_stdio_stream(&self, pid: u32, fd: i32) -> bool {
        let mut buffers = self.snapshots(pid).iter().flat_map(|snapshot| snapshot.buffers);
        let is_stdio = |walker| matches!(walker, RuntimeId::GLIBC | RuntimeId::MUSL);
        // The FILE inside of a std::ofstream has no buffer.
        buffers.any(|buffer| buffer.fd == fd && buffer.buffer_bytes > 0 && is_stdio(buffer.walker))
    }
}

/// Returns whether programs of a language are files that an installed interpreter runs.
pub(crate) fn is_interpreted(language: SourceLanguage) -> bool {
    use SourceLanguage::{C, Cpp, Go, Other, Rust};
    !matches!(language, C | Cpp | Go | Rust | Other)
}

#[cfg(test)]
mod tests {
    use weir_model::Logger;
    use weir_model::trace::{CallSite, Exit, Frame, SnapshotMoment, WriteSite};

    use crate::testing::*;

    /// Returns the fix for 40 bytes that are lost in a FILE of a program of C++ with a logger. `functions`: the stack of their write,
    /// innermost first.
    fn fix(logger: Logger, functions: &[&str]) -> String {
        let mut builder = recording(5.0);
        builder.root().exit = Some(Exit::Signal(9));
        let image = &mut builder.root().images[0];
        (image.language, image.logger) = (Some(weir_model::SourceLanguage::Cpp), Some(logger));
        let file = builder.file("/d/log", File);
        builder.stream(1, 5, file, Out, 1, 4096);
        let lost = weir_model::trace::Buffer {
            mode: Some(weir_model::Mode::Full),
            buffer_bytes: 4096,
            pending_bytes: 40,
            pending: b"0123456789012345678901234567890123456789".to_vec(),
            ..weir_model::trace::Buffer::empty(super::RuntimeId::GLIBC, 0x1000, 5)
        };
        builder.snapshot(4.9, 1, SnapshotMoment::Signal, &[lost]);
        let frame = |function: &&str| Frame {
            function: Some((*function).into()),
            module: "/d/prog".into(),
            ..Frame::default()
        };
        let frames: Vec<Frame> = functions.iter().map(frame).collect();
        if !frames.is_empty() {
            let call_site = CallSite { at_s: 1.0, frames, ..CallSite::default() };
            builder.0.write_sites.push(WriteSite { pid: 1, stream: 0x1000, until_s: None, call_site });
        }
        builder.finding("lost-at-kill").fix
    }

    #[test]
    fn a_logger_flushes_its_own_file() {
        let written =
            fix(Logger::Spdlog, &["fwrite", "spdlog::details::file_helper::write(fmt const&)", "main"]);
        assert!(written.contains("logger->flush_on(spdlog::level::info);"), "{written}");
        assert!(
            written.contains("spdlog::flush_every(std::chrono::seconds(1))") && !written.contains("fflush"),
            "{written}"
        );
        let contained = fix(Logger::Glog, &[]);
        assert!(contained.contains("FLAGS_logbufsecs = 0;"), "{contained}");
        assert!(contained.contains("if glog writes the file; else fflush(f)"), "{contained}");
        let own = fix(Logger::Spdlog, &["fwrite", "report()", "main"]);
        assert!(own.contains("fflush(f);") && !own.contains("spdlog"), "{own}");
    }
}
