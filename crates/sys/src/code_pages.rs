//! The resident code pages of weir's own process.

use std::ops::Range;
use std::ptr;

use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

/// Unmaps the resident pages of weir's code and constants (MADV_DONTNEED).
///
/// Otherwise the kernel does this while weir exits (half a millisecond for 6 MB), and the caller's waitpid(2) takes that
/// much longer. Call it where weir waits anyway: after its start and before its end. Code that runs again is mapped from
/// the page cache. A debugger's breakpoints in weir are lost.
pub fn release() {
    let page = page_size();
    for segment in read_only_segments() {
        let (start, end) = (segment.start.next_multiple_of(page), segment.end / page * page);
        if start < end {
            // SAFETY: the pages are private, read-only mappings of the program's file that nothing writes to, so the kernel
            // reads the same bytes from the file again. The range is within one segment: between segments the kernel may place
            // other mappings, whose bytes would be lost, or which cannot be mapped again, as a BPF ring buffer.
            let _harmless = unsafe {
                madvise(ptr::with_exposed_provenance_mut(start), end - start, Advice::LinuxDontNeed)
            };
        }
    }
}

/// Returns the addresses of the program's read-only segments (dl_iterate_phdr(3)).
fn read_only_segments() -> Vec<Range<usize>> {
    let mut segments: Vec<Range<usize>> = Vec::new();
    // SAFETY: the callback gets the vector, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(collect), ptr::from_mut(&mut segments).cast()) };
    segments
}

/// Collects the segments of the first object, which is the program, and ends the iteration.
unsafe extern "C" fn collect(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    segments: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: dl_iterate_phdr passes a valid entry with `dlpi_phnum` headers, and the vector of `read_only_segments`.
    let (info, segments) = unsafe { (&*info, &mut *segments.cast::<Vec<Range<usize>>>()) };
    // SAFETY: as above.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let read_only = headers.iter().filter(|one| one.p_type == libc::PT_LOAD && one.p_flags & libc::PF_W == 0);
    segments.extend(read_only.map(|one| {
        let start = info.dlpi_addr.wrapping_add(one.p_vaddr) as usize;
        start..start + one.p_memsz as usize
    }));
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the resident file pages of this process: the third field of /proc/PID/statm (proc(5)).
    fn file_pages() -> u64 {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(2).unwrap().parse().unwrap()
    }

    #[test]
    fn released_code_is_mapped_again() {
        let before = file_pages();
        release();
        let after = file_pages();
        assert!(after < before, "{before} pages before, {after} after");
        assert_eq!("it still runs".replace("still ", ""), "it runs");
    }

    #[test]
    fn each_range_is_a_mapping_of_the_program() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let exe = std::env::current_exe().unwrap();
        let of_program: Vec<Range<usize>> = maps
            .lines()
            .filter(|line| line.ends_with(exe.to_str().unwrap()) && !line.contains(" rw"))
            .filter_map(|line| {
                let (start, end) = line.split(' ').next()?.split_once('-')?;
                Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
            })
            .collect();
        let segments = read_only_segments();
        assert!(segments.len() >= 2, "{segments:?}");
        for segment in segments {
            let is_within =
                |mapping: &Range<usize>| mapping.start <= segment.start && segment.end <= mapping.end;
            assert!(of_program.iter().any(is_within), "{segment:x?} of {of_program:x?}");
        }
    }
}
