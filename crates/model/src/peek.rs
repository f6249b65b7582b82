//! What is in a running process's buffers, as one look shows it.

use serde::Serialize;

use crate::trace::RuntimeId;
use crate::{Mode, StreamKind};

/// Value of [`PeekDocument::schema`].
pub const SCHEMA: &str = "weir-peek/1";

/// The document that `weir peek --json` writes.
#[derive(Debug, Serialize)]
pub struct PeekDocument<'a> {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Processes in the order of the command line, each followed by its descendants.
    pub processes: &'a [Peek],
}

impl<'a> PeekDocument<'a> {
    /// Makes the document of these processes.
    pub fn new(processes: &'a [Peek]) -> Self {
        Self { schema: SCHEMA, processes }
    }
}

/// A process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Peek {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// Its arguments, the program first.
    pub command: Vec<String>,
    /// How many threads it has.
    pub threads: u64,
    /// Where the main thread is.
    pub state: State,
    /// Seconds since any of its threads last ran; None: one runs, or it is not known.
    pub idle_s: Option<f64>,
    /// Its streams that weir knows, in the order in which the program would write them at its end.
    pub streams: Vec<PeekStream>,
    /// What has buffers that cannot be read, a sentence each.
    pub unseen: Vec<String>,
}

/// What a thread does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum State {
    /// It runs, or would if there were a processor.
    Running,
    /// It waits in a system call.
    Asleep {
        /// The call's name; empty: not known.
        call: String,
        /// What it waits for, where the call names a descriptor.
        fd: Option<i32>,
    },
    /// By job control or by a tracer.
    Stopped,
}

/// A stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PeekStream {
    /// Whose stream it is.
    pub walker: RuntimeId,
    /// Its descriptor; -1: none.
    pub fd: i32,
    /// What is behind that.
    pub kind: StreamKind,
    /// Its name.
    pub path: String,
    /// Those at the other end of a pipe.
    pub peers: Vec<Peer>,
    /// How it is set; None: not yet decided.
    pub mode: Option<Mode>,
    /// Size of the buffer; 0: none yet.
    pub buffer_bytes: u64,
    /// Bytes written by the program and not by the kernel yet.
    pub pending_bytes: u64,
    /// They have waited so many seconds at least; None: it is not known.
    pub since_s: Option<f64>,
    /// Bytes taken from the kernel and not by the program yet.
    pub unread_bytes: u64,
    /// Whether a thread holds its lock; None: it has none, or it is not known.
    pub locked: Option<bool>,
    /// Whether `weir flush` can write them out.
    pub can_be_flushed: bool,
    /// The bytes that wait to be written, or those to be read where there are none, with escapes as in C; the
    /// first of them, if there are many.
    pub preview: String,
    /// So many bytes are in the preview.
    pub preview_bytes: u64,
}

/// A process at the other end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Peer {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub comm: String,
}

/// Bytes as text on one line, with escapes as in C: what is no UTF-8 or steers a terminal is a number.
pub fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                '\r' => text.push_str("\\r"),
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                _ if letter.is_control() || is_invisible(letter) => {
                    let mut encoded = [0; 4];
                    letter
                        .encode_utf8(&mut encoded)
                        .bytes()
                        .for_each(|byte| text += &format!("\\x{byte:02x}"));
                }
                _ => text.push(letter),
            }
        }
        chunk.invalid().iter().for_each(|byte| text += &format!("\\x{byte:02x}"));
    }
    text
}

/// Changes how the text around it is shown while showing nothing itself.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_kind_are_one_line() {
        assert_eq!(escaped(b"ready: \"8080\"\n\tc:\\x\r"), r#"ready: \"8080\"\n\tc:\\x\r"#);
        assert_eq!(escaped("grüße".as_bytes()), "grüße");
        assert_eq!(escaped(b"\x1b[31m\xff\x00"), r"\x1b[31m\xff\x00");
        assert_eq!(escaped("\u{202e}".as_bytes()), r"\xe2\x80\xae");
    }
}
