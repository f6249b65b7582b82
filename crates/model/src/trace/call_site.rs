//! The place in a program that wrote last into a stream's buffer.

use serde::{Deserialize, Serialize};

/// A function on the stack of the thread that wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Its name, demangled; None: the image tells none.
    pub function: Option<String>,
    /// The source file, as the compiler knew it.
    pub file: Option<String>,
    /// The line in that file.
    pub line: Option<u32>,
    /// The image that the code is in: a path; empty: in no file.
    pub module: String,
    /// Of the code in that image, in the image's own addresses.
    pub offset: u64,
    /// It is the C library's or the language's own: not where one would look for a mistake.
    pub library: bool,
}

/// Where a program wrote into a buffer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallSite {
    /// When, seconds since the recording began.
    pub at_s: f64,
    /// Nothing was written into the buffer after it, as far as can be known. False: something may have been, unseen.
    pub last: bool,
    /// The function that wrote, its caller, that one's caller …; at most sixteen.
    pub frames: Vec<Frame>,
}

/// A place, with the stream whose buffer it is and how long it was the last that is known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WriteSite {
    /// The process.
    pub pid: u32,
    /// The stream, as in [`super::Buffer::address`].
    pub stream: u64,
    /// When the next write came, or the next program; None: none did.
    pub until_s: Option<f64>,
    /// Where.
    #[serde(rename = "place")]
    pub call_site: CallSite,
}

impl WriteSite {
    /// Whether it is the last of this stream that is known at a time.
    pub fn is_of(&self, pid: u32, stream: u64, at_s: f64) -> bool {
        let then = self.call_site.at_s <= at_s && self.until_s.is_none_or(|until_s| at_s < until_s);
        self.pid == pid && self.stream == stream && then
    }
}

impl CallSite {
    /// The program's own function that wrote, and who called it; not code that it made at run time, in no file.
    pub fn own_frames(&self) -> impl Iterator<Item = &Frame> {
        let own = self.frames.iter().filter(|frame| !frame.library && !frame.module.is_empty());
        own.take(2)
    }
}

impl Frame {
    /// As in a sentence: `report() at report.c:42`, `report() in prog`, `prog+0x11b9`.
    pub fn words(&self) -> String {
        let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_string();
        let module = if self.module.is_empty() { "?".into() } else { name(&self.module) };
        match (&self.function, &self.file, self.line) {
            (Some(function), Some(file), Some(line)) => {
                format!("{} at {}:{line}", called(function), name(file))
            }
            (Some(function), _, _) => format!("{} in {module}", called(function)),
            (None, Some(file), Some(line)) => format!("{}:{line}", name(file)),
            _ => format!("{module}+{:#x}", self.offset),
        }
    }
}

/// C++ has the types of the arguments in the name.
fn called(function: &str) -> String {
    if function.ends_with(')') { function.into() } else { format!("{function}()") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: Option<&str>, file: Option<&str>) -> Frame {
        let line = file.map(|_| 42);
        let (function, file) = (function.map(str::to_string), file.map(str::to_string));
        Frame { function, file, line, module: "/usr/bin/prog".into(), offset: 0x11b9, library: false }
    }

    #[test]
    fn a_frame_is_said_by_the_best_that_is_known() {
        assert_eq!(frame(Some("report"), Some("/src/report.c")).words(), "report() at report.c:42");
        assert_eq!(frame(Some("report"), None).words(), "report() in prog");
        assert_eq!(frame(Some("f(int)"), None).words(), "f(int) in prog");
        assert_eq!(frame(None, None).words(), "prog+0x11b9");
        assert_eq!(Frame::default().words(), "?+0x0");
    }

    #[test]
    fn a_place_counts_until_the_next_write() {
        let call_site = CallSite { at_s: 1.0, ..CallSite::default() };
        let wrote = WriteSite { pid: 7, stream: 9, until_s: Some(3.0), call_site };
        assert!(wrote.is_of(7, 9, 1.0) && wrote.is_of(7, 9, 2.9));
        assert!(!wrote.is_of(7, 9, 0.9) && !wrote.is_of(7, 9, 3.0));
        assert!(!wrote.is_of(8, 9, 2.0) && !wrote.is_of(7, 8, 2.0));
        assert!(WriteSite { until_s: None, ..wrote }.is_of(7, 9, 1e9));
    }
}
