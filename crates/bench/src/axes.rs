//! The words on the command line: workloads, sync policies, cache states, advices.
//!
//! Each word is defined once, here; the numbers are those of `frame/job.h` and posix_fadvise(2).

use std::str::FromStr;

use weir_model::{Durability, Mode, Size};

use crate::error::suggestion;

/// Defines an enum whose variants have a name, a number for C and a line of explanation.
macro_rules! words {
    ($(#[$doc:meta])* $type:ident, $kind:literal: $($variant:ident = $number:literal, $name:literal, $title:literal;)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $type { $(#[doc = $title] $variant,)* }

        impl $type {
            /// Every variant, in the order of the declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// Returns the word on the command line and in JSON.
            pub fn name(self) -> &'static str { match self { $(Self::$variant => $name,)* } }
            /// Returns one line of explanation.
            pub fn title(self) -> &'static str { match self { $(Self::$variant => $title,)* } }
            /// Returns the number that the C loops use.
            pub fn number(self) -> i32 { match self { $(Self::$variant => $number,)* } }
        }

        impl FromStr for $type {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.iter().copied().find(|word| word.name() == text).ok_or_else(|| {
                    format!("unknown {} '{text}'; {}", $kind, suggestion(text, Self::ALL.iter().map(|word| word.name())))
                })
            }
        }
    };
}

words! {
    /// The work of the measured program.
    Workload, "workload":
    Copy = 0, "copy", "file to file";
    Write = 1, "write", "memory to file";
    Read = 2, "read", "file to memory";
    Translate = 3, "translate", "file to file, byte by byte through a map, as tr(1)";
    Log = 4, "log", "lines of a given length, appended";
}

impl Workload {
    /// Returns whether the workload reads an input file.
    pub fn has_input(self) -> bool {
        matches!(self, Self::Copy | Self::Read | Self::Translate)
    }

    /// Returns whether the workload writes an output file.
    pub fn has_output(self) -> bool {
        self != Self::Read
    }
}

words! {
    /// The call or flag that forces written bytes to the device.
    SyncKind, "sync policy":
    None = 0, "none", "never: the bytes are in the page cache when the program ends";
    End = 1, "end", "one fsync(2) before close";
    Fsync = 2, "fsync", "fsync(2) after every record, or :N records, or :SIZE bytes";
    Fdatasync = 3, "fdatasync", "fdatasync(2), the same way";
    ODsync = 4, "o_dsync", "open(2) with O_DSYNC: every write waits for its data";
    OSync = 5, "o_sync", "open(2) with O_SYNC: every write waits for data and metadata";
    RwfDsync = 6, "rwf_dsync", "pwritev2(2) with RWF_DSYNC on every write";
    Range = 7, "sync_file_range", "sync_file_range(2): starts writeback and waits, NO durability";
}

impl SyncKind {
    /// Returns whether every write(2) waits for the device (O_SYNC, O_DSYNC, RWF_DSYNC).
    pub fn in_every_write(self) -> bool {
        matches!(self, Self::ODsync | Self::OSync | Self::RwfDsync)
    }

    /// Returns whether the loop repeats a sync call.
    pub fn repeats(self) -> bool {
        matches!(self, Self::Fsync | Self::Fdatasync | Self::Range)
    }

    /// Returns which failures the bytes survive after the program's end.
    pub fn durability(self) -> Durability {
        match self {
            Self::None | Self::Range => Durability::Kernel,
            _ => Durability::Data,
        }
    }
}

words! {
    /// State of the page cache before a sample.
    CacheState, "cache state":
    Warm = 0, "warm", "the input is in the page cache";
    Cold = 1, "cold", "the input is not in the page cache; verified before each sample";
}

words! {
    /// Advice on the input, posix_fadvise(2).
    Advice, "advice":
    Normal = 0, "normal", "default read-ahead";
    Random = 1, "random", "no read-ahead";
    Sequential = 2, "sequential", "twice the read-ahead";
    Willneed = 3, "willneed", "read it all now";
    Dontneed = 4, "dontneed", "drop the cached pages";
    Noreuse = 5, "noreuse", "the data is used once";
}

/// Returns the `enum wb_mode` of a setvbuf(3) mode.
pub fn mode_number(mode: Option<Mode>) -> u32 {
    match mode {
        Some(Mode::None) => 1,
        Some(Mode::Line) => 2,
        Some(Mode::Full) => 3,
        _ => 0,
    }
}

/// Parses a setvbuf(3) mode: `none`, `line` or `full`.
pub fn parse_mode(text: &str) -> Result<Mode, String> {
    let known = [Mode::None, Mode::Line, Mode::Full];
    known.into_iter().find(|mode| mode.name() == text).ok_or_else(|| {
        format!("unknown buffering mode '{text}'; {}", suggestion(text, known.iter().map(|mode| mode.name())))
    })
}

/// The interval of a repeated sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Every {
    /// One sync per this number of records.
    Records(u64),
    /// One sync per this number of bytes.
    Bytes(u64),
}

/// A sync policy as typed: `none`, `o_sync`, `fsync`, `fdatasync:16`, `fsync:1MiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sync {
    /// How written bytes are forced to the device.
    pub kind: SyncKind,
    /// The interval, for kinds that repeat.
    pub every: Every,
}

impl Sync {
    /// Returns the policy of this kind. A kind that repeats syncs after each record.
    pub fn of(kind: SyncKind) -> Self {
        Self { kind, every: Every::Records(1) }
    }

    /// Returns the bytes between two syncs for records of `record_bytes`.
    pub fn interval_bytes(self, record_bytes: u64) -> u64 {
        match self.every {
            Every::Records(records) => records.saturating_mul(record_bytes),
            Every::Bytes(bytes) => bytes.max(record_bytes),
        }
    }
}

impl FromStr for Sync {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, every)) = text.split_once(':') else { return text.parse().map(Self::of) };
        let kind: SyncKind = name.parse()?;
        if !kind.repeats() {
            return Err(format!("'{name}' does not repeat: write it without ':{every}'"));
        }
        let every = match every.parse::<u64>() {
            Ok(records) => Every::Records(records),
            Err(_) => Every::Bytes(every.parse::<Size>().map_err(|error| error.to_string())?.0),
        };
        match every {
            Every::Records(0) | Every::Bytes(0) => Err(format!("'{text}': the interval must be at least 1")),
            every => Ok(Self { kind, every }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sync_policies_as_typed() {
        let parse = |text: &str| text.parse::<Sync>();
        assert_eq!(parse("o_sync").unwrap(), Sync::of(SyncKind::OSync));
        assert_eq!(parse("fsync").unwrap().interval_bytes(64), 64);
        assert_eq!(parse("fdatasync:16").unwrap().interval_bytes(64), 1024);
        assert_eq!(parse("fsync:1MiB").unwrap().interval_bytes(64), 1 << 20);
        assert_eq!(parse("fsync:1K").unwrap().interval_bytes(4096), 4096);
        assert!(parse("fsync:0").is_err() && parse("end:4").is_err() && parse("fsync:x").is_err());
        assert_eq!(parse("fsnc").unwrap_err(), "unknown sync policy 'fsnc'; did you mean 'fsync'?");
    }

    #[test]
    fn only_policies_that_reach_the_device_are_durable() {
        assert_eq!(SyncKind::Range.durability(), Durability::Kernel);
        assert_eq!(SyncKind::OSync.durability(), Durability::Data);
    }
}
