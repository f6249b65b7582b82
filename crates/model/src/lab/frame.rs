//! A recorded run as frames: what each call changed, and where the bytes are then.

use serde::{Deserialize, Serialize};

use super::ProgramVersion;

/// The frames of one run of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteppedRun {
    /// The program that ran.
    pub version: ProgramVersion,
    /// Number of steps of the whole run; `frames` has the first ones.
    pub steps: usize,
    /// The frames in the order of the calls.
    pub frames: Vec<LabFrame>,
}

/// The state of processes and files after one step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabFrame {
    /// The call or event, as a sentence.
    pub text: String,
    /// The effect of the step on the bytes, as a sentence; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The bytes that the step moved from a process to a file, as a text; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub moved: String,
    /// The buffers of the processes.
    pub processes: Vec<FrameBox>,
    /// Files and pipes that the processes use.
    pub files: Vec<FrameBox>,
}

/// A buffer, file or pipe with the end of its content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameBox {
    /// The process, or the name and size of the file.
    pub header: String,
    /// The stream, or the layer that has the bytes of the file; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The last lines of the content.
    pub lines: Vec<FrameLine>,
    /// The step changes this box.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
}

/// One line of a content, with escapes for invisible bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameLine {
    /// The line, without its newline.
    pub text: String,
    /// The step added this line.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new: bool,
}
