//! weir's own code in memory.

use std::ptr;

use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

// SAFETY: the linker defines both; only their addresses are taken.
unsafe extern "C" {
    static __executable_start: u8;
    static etext: u8;
}

/// Takes weir's code and constants out of its page tables: the kernel does that at its end otherwise (half a millisecond for
/// 6 MB), and whoever waits for weir waits for that. To be called where weir waits for something itself: when its start is over,
/// and when it is about to end. What is used again comes back from the page cache; a debugger's breakpoints do not.
pub fn release() {
    let page = page_size();
    let (start, end) = (ptr::addr_of!(__executable_start) as usize, ptr::addr_of!(etext) as usize);
    let (start, end) = (start.next_multiple_of(page), end / page * page);
    if start < end {
        // SAFETY: these pages are of the program's file, mapped privately for reading and executing, and nobody writes there;
        // the kernel reads them again from the file. Relocated data lies behind `etext`.
        let _harmless =
            unsafe { madvise(ptr::with_exposed_provenance_mut(start), end - start, Advice::LinuxDontNeed) };
    }
}

#[cfg(test)]
mod tests {
    /// Pages of files in this process's memory: the third figure of statm (proc(5)).
    fn file_pages() -> u64 {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(2).unwrap().parse().unwrap()
    }

    #[test]
    fn code_goes_and_comes_back() {
        let before = file_pages();
        super::release();
        let after = file_pages();
        assert!(after < before, "{before} pages before, {after} after");
        assert_eq!("it still runs".replace("still ", ""), "it runs");
    }
}
