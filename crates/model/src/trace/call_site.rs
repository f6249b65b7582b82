//! Call sites: the functions of a program that write into a stream's buffer.

use serde::{Deserialize, Serialize};

use super::{Direction, UNKNOWN};
use crate::Untrusted;

/// A function on the call stack of a write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Demangled name; `None` without symbols.
    pub function: Option<Untrusted>,
    /// Source file as in the debug information.
    pub file: Option<Untrusted>,
    /// Line in the source file.
    pub line: Option<u32>,
    /// Path of the executable or library; empty for code that is in no file.
    pub module: Untrusted,
    /// Address of the code in the module.
    pub offset: u64,
    /// The function belongs to the C library or the language runtime, not to the program.
    pub library: bool,
}

/// The call stack of a write into a buffer, or of a sampled call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallSite {
    /// Time of the write.
    pub at_s: f64,
    /// No later write into the buffer is possible. Otherwise there may be later writes that were not recorded.
    pub last: bool,
    /// The function that wrote and its callers, innermost first; at most 16.
    pub frames: Vec<Frame>,
}

/// A call site, its stream, and the time for which it is the last known write.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct WriteSite {
    pub pid: u32,
    /// Stream, as in [`super::Buffer::address`].
    pub stream: u64,
    /// Time of the next write or of the next execve(2); `None` if there is none.
    pub until_s: Option<f64>,
    #[serde(rename = "place")]
    pub call_site: CallSite,
}

/// A small read or write that was sampled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct SampledCall {
    pub pid: u32,
    pub fd: i32,
    pub direction: Direction,
    #[serde(rename = "place")]
    pub call_site: CallSite,
}

impl WriteSite {
    /// Returns whether this is the last known write to a stream at a time.
    pub fn is_of(&self, pid: u32, stream: u64, at_s: f64) -> bool {
        let then = self.call_site.at_s <= at_s && self.until_s.is_none_or(|until_s| at_s < until_s);
        self.pid == pid && self.stream == stream && then
    }
}

impl CallSite {
    /// Returns the innermost two frames of the program itself, without libraries and code that is in no file.
    pub fn own_frames(&self) -> impl Iterator<Item = &Frame> {
        let own = self.frames.iter().filter(|frame| !frame.library && !frame.module.is_empty());
        own.take(2)
    }
}

impl Frame {
    /// Returns the frame for a sentence: `report() at report.c:42`, `report() in prog`, `prog+0x11b9`.
    pub fn words(&self) -> String {
        let name = |path: &Untrusted| path.part(|path| path.rsplit('/').next().unwrap_or(path));
        let module = if self.module.is_empty() { UNKNOWN.clone() } else { name(&self.module) };
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

/// Returns a function's name with parentheses. Names of C++ functions have them already.
fn called(function: &Untrusted) -> String {
    if function.exact().ends_with(')') { function.to_string() } else { format!("{function}()") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: Option<&str>, file: Option<&str>) -> Frame {
        let line = file.map(|_| 42);
        let (function, file) = (function.map(Untrusted::from), file.map(Untrusted::from));
        Frame { function, file, line, module: "/usr/bin/prog".into(), offset: 0x11b9, library: false }
    }

    #[test]
    fn a_frame_is_named_by_its_best_information() {
        assert_eq!(frame(Some("report"), Some("/src/report.c")).words(), "report() at report.c:42");
        assert_eq!(frame(Some("report"), None).words(), "report() in prog");
        assert_eq!(frame(Some("f(int)"), None).words(), "f(int) in prog");
        assert_eq!(frame(None, None).words(), "prog+0x11b9");
        assert_eq!(Frame::default().words(), "?+0x0");
    }

    #[test]
    fn a_call_site_is_valid_until_the_next_write() {
        let call_site = CallSite { at_s: 1.0, ..CallSite::default() };
        let wrote = WriteSite { pid: 7, stream: 9, until_s: Some(3.0), call_site };
        assert!(wrote.is_of(7, 9, 1.0) && wrote.is_of(7, 9, 2.9));
        assert!(!wrote.is_of(7, 9, 0.9) && !wrote.is_of(7, 9, 3.0));
        assert!(!wrote.is_of(8, 9, 2.0) && !wrote.is_of(7, 8, 2.0));
        assert!(WriteSite { until_s: None, ..wrote }.is_of(7, 9, 1e9));
    }
}
