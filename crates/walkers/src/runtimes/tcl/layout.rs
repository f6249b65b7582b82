//! Memory layouts of Tcl by version, from tclIO.h, tclIO.c and tclUnixSock.c.

use weir_sys::memory::Memory;

use crate::copied_memory::{int, structure, word};
use crate::pending_bytes::MemoryStore;

/// Size of `ThreadSpecificData` of tclIO.c up to the last mark that a standard channel is initialized.
pub(super) const THREAD_BYTES: usize = 64;

/// Offsets of one version.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TclLayout {
    /// Offset of the topmost channel in `ChannelState`. The lowest channel and the next state follow.
    pub top: usize,
    /// The bit CHANNEL_LINEBUFFERED of `flags`; CHANNEL_UNBUFFERED is the next one.
    pub by_line: i32,
    /// Sizes and positions in `ChannelBuffer` have 8 bytes each instead of 4.
    pub wide: bool,
    /// Offset of a socket's descriptor in `TcpState`.
    pub socket: usize,
    /// Offsets of the marks in `ThreadSpecificData`.
    pub marks: [usize; 3],
}

const FIRST_OF_8_6: TclLayout =
    TclLayout { top: 200, by_line: 1 << 4, wide: false, socket: 16, marks: [24, 40, 56] };
/// 8.6.14 and later: `timerChanPtr` is new.
const OF_8_6: TclLayout = TclLayout { top: 208, ..FIRST_OF_8_6 };
const OF_9: TclLayout = TclLayout { top: 208, by_line: 1 << 17, wide: true, socket: 24, marks: [48, 52, 56] };

impl TclLayout {
    /// Returns the layouts that a library of this name can have. No memory fits two of them.
    pub fn of_library(name: &str) -> &'static [TclLayout] {
        match name {
            _ if name.starts_with("libtcl8.6") => &[FIRST_OF_8_6, OF_8_6],
            _ if name.starts_with("libtcl9.") => &[OF_9],
            _ => &[],
        }
    }

    pub fn bottom(&self) -> usize {
        self.top + 8
    }

    pub fn next(&self) -> usize {
        self.top + 16
    }

    pub fn unbuffered(&self) -> i32 {
        self.by_line << 1
    }

    /// Returns the size of the head of `ChannelBuffer`, which the bytes follow: four numbers and a pointer.
    pub fn head_bytes(&self) -> usize {
        4 * self.number_bytes() + 8
    }

    fn number_bytes(&self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    /// Returns the stores that set both positions of a buffer.
    pub fn positions(&self, buffer: u64, position: u64) -> Vec<MemoryStore> {
        let bytes = position.to_le_bytes()[..self.number_bytes()].repeat(2);
        vec![MemoryStore { address: buffer.wrapping_add(self.number_bytes() as u64), bytes }]
    }

    /// Returns the address of the position of the first byte that a buffer still has.
    pub fn removed(&self, buffer: u64) -> u64 {
        buffer.wrapping_add(2 * self.number_bytes() as u64)
    }
}

/// The head of `ChannelBuffer`.
pub(super) struct BufferHead {
    /// The next position to add at.
    pub added: u64,
    /// The next position to remove from.
    pub removed: u64,
    /// The number of positions.
    pub length: u64,
    /// The address of the next buffer, or 0.
    pub following: u64,
}

impl BufferHead {
    /// Reads the head of a buffer; None if it is not mapped or has a negative number.
    pub fn read(memory: &dyn Memory, layout: &TclLayout, at: u64) -> Option<BufferHead> {
        let head: [u8; 40] = match layout.wide {
            true => structure(memory, at)?,
            false => {
                let mut head = [0; 40];
                head[..24].copy_from_slice(&structure::<24>(memory, at)?);
                head
            }
        };
        let number = |index: usize| match layout.wide {
            true => i64::from_le_bytes(word(&head, 8 * index).to_le_bytes()).try_into().ok(),
            false => int(&head, 4 * index).try_into().ok(),
        };
        let following = word(&head, layout.head_bytes() - 8);
        Some(BufferHead { added: number(1)?, removed: number(2)?, length: number(3)?, following })
    }
}
