//! What weir can find wrong with a program's bytes. The identifiers are an interface that stays.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::trace::CallSite;

/// Defines every finding once: its identifier and what it means in one line.
macro_rules! findings {
    ($($variant:ident = $id:literal, $meaning:literal;)*) => {
        /// The kinds of findings.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum FindingId {
            $(#[doc = $meaning] #[serde(rename = $id)] $variant,)*
        }

        impl FindingId {
            /// All of them, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The identifier in JSON and on the screen.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $id,)* }
            }

            /// What it means, in one line.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

findings! {
    TinyWrites = "tiny-writes", "many write calls of a few bytes each";
    TinyReads = "tiny-reads", "many read calls of a few bytes each";
    LineBufferedBulk = "line-buffered-bulk", "much output, one call for each line, to where nobody waits for lines";
    StuckOutput = "stuck-output", "output waits in a user-space buffer while the program does something else";
    LostAtKill = "lost-at-kill", "bytes in a user-space buffer are lost when a signal ends the process";
    LostAtExec = "lost-at-exec", "bytes in a user-space buffer are lost at execve(2)";
    LostAtExit = "lost-at-exit", "bytes in a user-space buffer are lost at _exit(2)";
    DoubledAtFork = "doubled-at-fork", "bytes pending at fork(2) are written by parent and child";
    OverRead = "over-read", "a program read more than it used from a descriptor that the next one shares";
    EatenStdin = "eaten-stdin", "a child consumed the standard input that its parent's loop reads";
    MixedOrder = "mixed-order", "buffered and direct output to one file arrive out of order";
    TornRecords = "torn-records", "records of several writers are cut into each other";
    SharedOffset = "shared-offset", "processes share one file offset and move it under each other";
    SyncTinyWrites = "sync-tiny-writes", "small writes, each waiting for the device";
    SyncEveryWrite = "sync-every-write", "a sync call after every write";
    MissingSyncBeforeRename = "missing-sync-before-rename", "a file is renamed into place before its data is on the device";
    MissingDirSync = "missing-dir-sync", "the directory entry is not synced: a power cut can undo the rename";
    IgnoredWriteError = "ignored-write-error", "a write failed and the program went on";
    IgnoredCloseError = "ignored-close-error", "close(2) reported an error that nobody looked at";
    ShortWriteUnhandled = "short-write-unhandled", "a write was short and the rest was not written";
    DirectMisaligned = "direct-misaligned", "O_DIRECT with an address, offset or length that does not fit the device";
    DoubleBuffered = "double-buffered", "bytes are copied through a second user-space buffer for nothing";
    CouldCopyInKernel = "could-copy-in-kernel", "bytes pass through the program unchanged";
    RandomWithoutAdvice = "random-without-advice", "random reads with read-ahead left on";
    SmallPipe = "small-pipe", "a pipe's capacity makes both sides wait";
    SeekAndReread = "seek-and-reread", "a buffer is thrown away and read again after each seek";
    ReadAfterEofSpin = "read-after-eof-spin", "a loop reads on at the end of the file";
    UnalignedWrites = "unaligned-writes", "writes that straddle blocks make the kernel read first";
    TerminalBulk = "terminal-bulk", "the terminal, not the program, sets the pace";
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Costs time or invites loss.
    Warn,
    /// Bytes are lost, doubled or torn, or most of the time is wasted.
    High,
}

/// What following the fix would save.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// Seconds.
    pub elapsed_s: f64,
    /// System calls.
    pub calls: u64,
}

/// One thing found, with its evidence; never made from a name alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is.
    pub id: FindingId,
    /// How much it matters.
    pub severity: Severity,
    /// The process.
    pub pid: u32,
    /// The descriptor.
    pub fd: i32,
    /// Where it leads.
    pub path: String,
    /// The figures that prove it, by name.
    pub evidence: BTreeMap<String, f64>,
    /// What happens, in a sentence.
    pub why: String,
    /// What to do, in a sentence or a command.
    pub fix: String,
    /// What that saves, where it can be told.
    pub gain: Option<Gain>,
    /// Where the program wrote last what waited or was lost, where that is known.
    #[serde(default)]
    pub wrote: Option<CallSite>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_unique_and_are_the_ones_in_json() {
        let mut names: Vec<_> = FindingId::ALL.iter().map(|id| id.name()).collect();
        assert_eq!(names.len(), 29);
        for id in FindingId::ALL {
            assert_eq!(serde_json::to_value(id).unwrap(), id.name());
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 29);
    }
}
