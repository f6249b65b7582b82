//! The resident code pages of weir's own process.

use std::ptr;

use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

// SAFETY: the linker defines both symbols; only their addresses are used.
unsafe extern "C" {
    static __executable_start: u8;
    static etext: u8;
}

/// Unmaps the resident pages of weir's code and constants (MADV_DONTNEED).
///
/// Otherwise the kernel does this while weir exits (half a millisecond for 6 MB), and the caller's waitpid(2) takes that
/// much longer. Call it where weir waits anyway: after its start and before its end. Code that runs again is mapped from
/// the page cache. A debugger's breakpoints in weir are lost.
pub fn release() {
    let page = page_size();
    let (start, end) = (ptr::addr_of!(__executable_start) as usize, ptr::addr_of!(etext) as usize);
    let (start, end) = (start.next_multiple_of(page), end / page * page);
    if start < end {
        // SAFETY: the pages are private, read-only mappings of the program's file that nothing writes to, so the kernel
        // reads the same bytes from the file again. Relocated data lies after `etext`.
        let _harmless =
            unsafe { madvise(ptr::with_exposed_provenance_mut(start), end - start, Advice::LinuxDontNeed) };
    }
}

#[cfg(test)]
mod tests {
    /// Returns the resident file pages of this process: the third field of /proc/PID/statm (proc(5)).
    fn file_pages() -> u64 {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(2).unwrap().parse().unwrap()
    }

    #[test]
    fn released_code_is_mapped_again() {
        let before = file_pages();
        super::release();
        let after = file_pages();
        assert!(after < before, "{before} pages before, {after} after");
        assert_eq!("it still runs".replace("still ", ""), "it runs");
    }
}
