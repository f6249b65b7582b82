//! Streams of fopencookie(3), whose bytes go to a function of the program.

use weir_sys::memory::Memory;

use super::{FILE_BYTES, FILENO};
use crate::copied_memory::{int, structure, word};

/// The descriptor in a stream of fopencookie(3): it has none, and is not closed.
const NO_DESCRIPTOR: i32 = -2;
/// Bytes of `struct _IO_cookie_file` after the FILE: the cookie, and the functions read and write.
const COOKIE_BYTES: usize = 24;
/// Size of `fmemopen_cookie_t`: the buffer, two flags, the size, the position, the largest position.
const MEMORY_BYTES: usize = 40;

/// Returns whether a FILE gives its bytes to a function of the program. fmemopen(3) makes such a FILE too, whose bytes stay in memory.
pub(super) fn has_own_writer(memory: &dyn Memory, at: u64, file: &[u8; FILE_BYTES]) -> bool {
    if int(file, FILENO) != NO_DESCRIPTOR {
        return false;
    }
    let Some(end) = at.checked_add(FILE_BYTES as u64) else { return false };
    let Some(cookie) = structure::<COOKIE_BYTES>(memory, end) else { return false };
    let writes = word(&cookie, 16) != 0;
    writes && !is_memory(memory, word(&cookie, 0))
}

fn is_memory(memory: &dyn Memory, cookie: u64) -> bool {
    structure::<MEMORY_BYTES>(memory, cookie).is_some_and(|cookie| {
        let [size, position, most] = [16, 24, 32].map(|field| word(&cookie, field));
        let flags = [int(&cookie, 8), int(&cookie, 12)];
        flags.iter().all(|flag| [0, 1].contains(flag)) && size > 0 && position <= size && most <= size
    })
}
