//! The question of `weir advise`.

use serde::{Deserialize, Serialize};

/// Defines an enum whose variants have a word for the command line and JSON, and a text for the dialogue.
macro_rules! words {
    ($(#[$doc:meta])* $type:ident: $($variant:ident = $word:literal, $text:literal;)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $type { $(#[doc = $text] #[serde(rename = $word)] $variant,)* }

        impl $type {
            /// Every variant, in the order of the declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the word on the command line and in JSON.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Returns the explanation for the dialogue.
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

words! {
    /// Loss that a kill of the program or a power cut may cause.
    AllowedLoss:
    None = "none", "nothing: each record is on the device when the call returns";
    Second = "second", "the records of the last second";
    Buffer = "buffer", "a buffer at a kill, and what the kernel has not written back at a power cut";
}

words! {
    /// The kind of storage below the file.
    Medium:
    Ssd = "ssd", "a solid-state disk";
    Hdd = "hdd", "a rotating disk";
    Sd = "sd", "an SD card";
    Emmc = "emmc", "flash memory on the board (eMMC)";
    Ram = "ram", "memory (tmpfs)";
    Network = "network", "a network file system";
    Unknown = "unknown", "unknown storage, such as a virtual disk";
}

words! {
    /// The language of the program.
    AdviceLanguage:
    C = "c", "C: stdio or system calls";
    Cpp = "cpp", "C++";
    Python = "python", "Python";
    Rust = "rust", "Rust";
    Go = "go", "Go";
    Java = "java", "Java";
    Node = "node", "JavaScript with Node.js";
    Shell = "shell", "a POSIX shell";
}

impl AdviceLanguage {
    /// Returns whether `weir advise` has a program in this language that uses libweir, a C library. Rust has bindings of it
    /// (docs/libweir.md), but `weir advise` has no program with them.
    pub fn has_libweir(self) -> bool {
        matches!(self, Self::C | Self::Cpp)
    }
}

impl Medium {
    /// Returns whether the medium wears by writing.
    pub fn wears(self) -> bool {
        matches!(self, Self::Ssd | Self::Sd | Self::Emmc)
    }

    /// Returns whether the medium is small flash memory, which wears so fast that written bytes count in the choice.
    pub fn is_small_flash(self) -> bool {
        matches!(self, Self::Sd | Self::Emmc)
    }
}

/// The records that a program writes, and the limits that a way of writing them must keep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdviceQuestion {
    /// Length of a record with its delimiter.
    pub record_bytes: u64,
    /// Records per second, of all writers together.
    pub rate: f64,
    /// Loss that a kill and a power cut may cause.
    pub loss: AllowedLoss,
    /// The longest time until another process can read a record.
    pub latency_s: f64,
    /// Threads or processes that write the file at the same time.
    pub sharers: u32,
    /// Storage below the file.
    pub medium: Medium,
    /// Language of the program.
    pub lang: AdviceLanguage,
    /// Directory of the file.
    pub dir: String,
}

impl AdviceQuestion {
    /// Returns the bytes per second.
    pub fn bytes_per_s(&self) -> f64 {
        self.record_bytes as f64 * self.rate
    }
}
