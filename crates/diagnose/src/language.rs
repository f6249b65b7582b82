//! The source language of a process, and the object in its code that a stream belongs to. They select the code of a fix and are
//! never evidence of a finding.

use weir_model::trace::{Image, RuntimeId};
use weir_model::{SourceLanguage, StreamKind};

use crate::code_fix::{CodeFix, CodeText, StreamObject, code_fix};
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
        let language = match self.language(pid, at_s) {
            // A FILE of a C++ program is C's.
            SourceLanguage::Cpp if object == StreamObject::File && self.has_stdio_stream(pid, fd) => {
                SourceLanguage::C
            }
            language => language,
        };
        code_fix(language, fix, object)
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
