//! Runtimes: C libraries, interpreters and compiled languages that buffer a program's output.
//!
//! `weir-walkers` has the table of the known runtimes.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Identifier of a runtime in JSON, for example `cpython`. A document may hold one of another version of weir.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuntimeId {
    /// The name, filled up with NUL.
    bytes: [u8; RuntimeId::MAX_BYTES],
}

/// The runtimes that code outside `weir-walkers` names.
#[allow(missing_docs)]
impl RuntimeId {
    pub const CPP: RuntimeId = RuntimeId::new("cpp");
    pub const CPYTHON: RuntimeId = RuntimeId::new("cpython");
    pub const GLIBC: RuntimeId = RuntimeId::new("glibc");
    pub const GO: RuntimeId = RuntimeId::new("go");
    pub const LIBWEIR: RuntimeId = RuntimeId::new("libweir");
    pub const MAWK: RuntimeId = RuntimeId::new("mawk");
    pub const MUSL: RuntimeId = RuntimeId::new("musl");
    pub const OCAML: RuntimeId = RuntimeId::new("ocaml");
    pub const PERL: RuntimeId = RuntimeId::new("perl");
    pub const RUBY: RuntimeId = RuntimeId::new("ruby");
    pub const RUST: RuntimeId = RuntimeId::new("rust");
    pub const TCL: RuntimeId = RuntimeId::new("tcl");
}

impl RuntimeId {
    /// An array of this size is as cheap to copy as a reference to a string.
    const MAX_BYTES: usize = 16;

    /// Returns the identifier with this name. Panics if the name is longer than 16 bytes.
    pub const fn new(name: &str) -> Self {
        match Self::parse(name) {
            Some(id) => id,
            None => panic!("the name of a runtime has at most 16 bytes"),
        }
    }

    const fn parse(name: &str) -> Option<Self> {
        let (text, mut bytes, mut at) = (name.as_bytes(), [0; Self::MAX_BYTES], 0);
        if text.len() > Self::MAX_BYTES {
            return None;
        }
        while at < text.len() {
            bytes[at] = text[at];
            at += 1;
        }
        Some(Self { bytes })
    }

    /// Returns the identifier as in JSON.
    pub fn as_str(&self) -> &str {
        let end = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(self.bytes.len());
        std::str::from_utf8(&self.bytes[..end]).unwrap_or_default()
    }
}

impl fmt::Display for RuntimeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for RuntimeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RuntimeId({})", self.as_str())
    }
}

impl Serialize for RuntimeId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for RuntimeId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::parse(&name).ok_or_else(|| de::Error::custom(format!("{name}: too long for a runtime's name")))
    }
}

/// A language with its own buffered streams. It decides the code of a fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum SourceLanguage {
    C,
    Cpp,
    Python,
    Perl,
    Ruby,
    Shell,
    Awk,
    Lua,
    Node,
    Tcl,
    Java,
    Go,
    Rust,
    Php,
    /// A language for which weir has no code, or one of a later version of weir.
    #[serde(other)]
    Other,
}

impl SourceLanguage {
    /// Returns whether its programs use the C library's streams.
    pub fn is_c_family(self) -> bool {
        matches!(self, SourceLanguage::C | SourceLanguage::Cpp)
    }
}

/// A library of C++ that writes a program's log through FILEs of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Logger {
    Spdlog,
    Glog,
    /// A library of a later version of weir.
    #[serde(other)]
    Other,
}

impl Logger {
    /// Returns the name under which its users know it.
    pub fn name(self) -> &'static str {
        match self {
            Logger::Spdlog => "spdlog",
            Logger::Glog => "glog",
            Logger::Other => "a logging library",
        }
    }

    /// Returns the namespace of its functions, in front of their demangled names.
    pub fn namespace(self) -> &'static str {
        match self {
            Logger::Spdlog => "spdlog::",
            Logger::Glog => "google::",
            Logger::Other => "?",
        }
    }
}

/// Programs that write their data by write(2) and not through a stream. Some have streams for messages.
pub const DIRECT_WRITERS: [&str; 8] = ["cat", "dd", "factor", "gzip", "pv", "tee", "xz", "yes"];
/// Programs of the C library that read their input by read(2) into buffers of their own, and write through its streams.
pub const DIRECT_READERS: [&str; 9] = ["gawk", "grep", "head", "mawk", "split", "tac", "tail", "tr", "wc"];

/// A runtime: how its programs buffer output, and how `weir run` changes that.
#[derive(Debug)]
pub struct Runtime {
    #[allow(missing_docs)]
    pub id: RuntimeId,
    /// The name in reports.
    pub name: &'static str,
    /// The language of its programs.
    pub language: SourceLanguage,
    #[allow(missing_docs)]
    pub fixes: RuntimeFixes,
    #[allow(missing_docs)]
    pub limits: RuntimeLimits,
}

/// The way in which a runtime honours an option of `weir run`. Each text is a sentence for `weir run --why`.
#[derive(Debug, Clone, Copy)]
pub enum RuntimeFix {
    /// The preload library calls setvbuf(3) and its like.
    Library,
    /// The supervisor drains the runtime's buffers, which a walker reads.
    Outside,
    /// Environment variables of the runtime.
    #[allow(missing_docs)]
    Environment { variables: &'static [(&'static str, &'static str)], effect: &'static str },
    /// The runtime's hook file, named in its environment.
    Hook(&'static str),
    /// The hook cannot do exactly this, and does something close to it.
    HookSubstitute(&'static str),
    /// Options after the command's name, which the user must ask for: `limit` says what they do not work for, and `unreached` names
    /// the buffers that are not reached without them.
    #[allow(missing_docs)]
    Options {
        options: &'static [&'static str],
        effect: &'static str,
        limit: &'static str,
        unreached: &'static str,
    },
    /// Nothing reaches the runtime's buffers, for this reason, but it writes to a terminal line by line.
    Terminal(&'static str),
    /// The runtime does it already.
    NotNeeded(&'static str),
    /// The command runs, but the option changes nothing in it, for this reason.
    NoEffect(&'static str),
    /// The library, if `--force` is given; otherwise the program sets the mode itself, as this text says.
    IfForced(&'static str),
    /// No fix exists, for this reason.
    Impossible(&'static str),
}

/// The fixes of a runtime, one for each kind of option.
#[derive(Debug, Clone, Copy)]
pub struct RuntimeFixes {
    /// `--stdout none`.
    pub unbuffered: RuntimeFix,
    /// `--stdout line`.
    pub line_buffered: RuntimeFix,
    /// `--stdout full`.
    pub fully_buffered: RuntimeFix,
    /// `--max-delay`.
    pub max_delay: RuntimeFix,
    /// `--rescue`.
    pub rescue: RuntimeFix,
    /// `--fix-fork`.
    pub fork: RuntimeFix,
    /// `--fix-order`.
    pub order: RuntimeFix,
    /// `--stdin`, `--stderr` and `--file`.
    pub other_streams: RuntimeFix,
}

impl RuntimeFixes {
    /// The fixes of a program that writes through the C library's stdio, which weir changes in place.
    pub const STDIO: RuntimeFixes = RuntimeFixes {
        unbuffered: RuntimeFix::Library,
        line_buffered: RuntimeFix::Library,
        fully_buffered: RuntimeFix::Library,
        max_delay: RuntimeFix::Outside,
        rescue: RuntimeFix::Outside,
        fork: RuntimeFix::Outside,
        order: RuntimeFix::Library,
        other_streams: RuntimeFix::Library,
    };

    /// Returns the fixes of a runtime whose buffers nothing reaches, for the reason `why`, and that writes to a terminal line by line.
    pub const fn by_terminal(why: &'static str) -> RuntimeFixes {
        RuntimeFixes {
            unbuffered: RuntimeFix::Terminal(why),
            line_buffered: RuntimeFix::Terminal(why),
            fully_buffered: RuntimeFix::NotNeeded("its buffer is full, unless standard output is a terminal"),
            max_delay: RuntimeFix::Terminal(why),
            rescue: RuntimeFix::Terminal(why),
            ..RuntimeFixes::all(RuntimeFix::Impossible(why))
        }
    }

    /// Returns the fixes of a runtime whose buffers nothing reaches, for the reason `why`, and that always writes standard output
    /// line by line.
    pub const fn by_line(why: &'static str) -> RuntimeFixes {
        const LINES: RuntimeFix = RuntimeFix::NotNeeded("each line of standard output is written at once");
        RuntimeFixes {
            line_buffered: LINES,
            max_delay: LINES,
            rescue: LINES,
            ..RuntimeFixes::all(RuntimeFix::Impossible(why))
        }
    }

    /// Returns the same fix for each option.
    pub const fn all(fix: RuntimeFix) -> RuntimeFixes {
        RuntimeFixes {
            unbuffered: fix,
            line_buffered: fix,
            fully_buffered: fix,
            max_delay: fix,
            rescue: fix,
            fork: fix,
            order: fix,
            other_streams: fix,
        }
    }
}

/// The options that a runtime rules out, and what its threads share.
#[derive(Debug, Clone, Copy)]
pub struct RuntimeLimits {
    /// The reason why `--coalesce` cannot gather the runtime's calls; `None` if it can.
    pub coalesce: Option<&'static str>,
    /// One lock serves all threads. A thread may wait for it after its write, before it notes in the stream that the bytes are
    /// written, while others run.
    pub has_global_lock: bool,
    /// The bytes that weir never writes, because the program still converts them to another encoding; a clause for `--why`.
    pub unconverted: Option<&'static str>,
}

impl RuntimeLimits {
    /// A runtime that rules out nothing, and whose threads share no lock.
    pub const NONE: RuntimeLimits =
        RuntimeLimits { coalesce: None, has_global_lock: false, unconverted: None };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_its_name_in_json() {
        assert_eq!(serde_json::to_string(&RuntimeId::CPYTHON).unwrap(), "\"cpython\"");
        assert_eq!(serde_json::from_str::<RuntimeId>("\"cpython\"").unwrap(), RuntimeId::CPYTHON);
        assert_eq!(serde_json::from_str::<RuntimeId>("\"of-16-bytes-long\"").unwrap().as_str().len(), 16);
        assert!(serde_json::from_str::<RuntimeId>("\"longer-than-16-bytes\"").is_err());
    }
}
