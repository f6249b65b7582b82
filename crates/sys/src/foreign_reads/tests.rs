//! Memory and files of other users' processes that do not answer.

use super::*;
use crate::memory::{Memory, ProcessMemory};

/// A value that a child of another user has at the same address.
static VALUE: [u8; 8] = *b"original";
const BYTES: usize = 1 << 16;
/// From linux/userfaultfd.h: the requests, and the mode that waits for missing pages.
const UFFDIO_API: libc::c_ulong = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::c_ulong = 0xc020_aa00;

/// Becomes a process of another user, answers the first byte of input by memory that no program serves, and waits. Only
/// makes system calls.
fn child(handler: i32, memory: u64, pipes: [i32; 2]) -> ! {
    let mut byte = 0u8;
    let register = [memory, BYTES as u64, 1, 0];
    // SAFETY: the calls take numbers and pointers to live locals.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534);
        libc::write(pipes[1], (&raw const byte).cast(), 1);
        libc::read(pipes[0], (&raw mut byte).cast(), 1);
        let registered = libc::ioctl(handler, UFFDIO_REGISTER as _, &raw const register);
        byte = u8::from(registered == 0);
        libc::write(pipes[1], (&raw const byte).cast(), 1);
        loop {
            libc::pause();
        }
    }
}

fn read_byte(fd: i32) -> u8 {
    let mut byte = 0u8;
    // SAFETY: the call writes to a live local.
    unsafe { libc::read(fd, (&raw mut byte).cast(), 1) };
    byte
}

#[test]
fn memory_of_a_stranger_is_read_and_written_with_a_limit() {
    let (mut to, mut from, api) = ([0; 2], [0; 2], [0xaau64, 0, 0]);
    // SAFETY: the calls take numbers and pointers to live locals; the mapping is new. The child makes system calls only.
    let (pid, memory) = unsafe {
        libc::pipe(to.as_mut_ptr());
        libc::pipe(from.as_mut_ptr());
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let memory = libc::mmap(std::ptr::null_mut(), BYTES, protection, flags, -1, 0) as u64;
        let pid = libc::fork();
        if pid == 0 {
            // A handler is for the memory of the process that makes it.
            let handler = libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) as i32;
            libc::ioctl(handler, UFFDIO_API as _, &raw const api);
            child(handler, memory, [to[0], from[1]]);
        }
        (pid as u32, memory)
    };
    read_byte(from[0]);
    if !served_mappings::is_of_own_user(pid) {
        let stranger = ProcessMemory { pid };
        assert_eq!(stranger.bytes(&raw const VALUE as u64, 8), VALUE);
        assert!(write_memory(pid, memory, b"changed!"));
        assert_eq!(stranger.bytes(memory, 8), b"changed!");
        // SAFETY: the call reads a live local.
        unsafe { libc::write(to[1], [1u8].as_ptr().cast(), 1) };
        if read_byte(from[0]) == 1 {
            // It was registered a moment ago. Its first page exists.
            let unserved = memory + BYTES as u64 / 2;
            assert!(!write_memory(pid, unserved, b"text"));
            assert_eq!(stranger.bytes(unserved, 4), b"", "it is not asked again");
            assert!(silent_processes().iter().any(|one| one.contains(&format!("process {pid} "))));
        }
    }
    // SAFETY: the child is not reaped, so the number is its own.
    unsafe {
        libc::kill(pid as i32, libc::SIGKILL);
        libc::waitpid(pid as i32, std::ptr::null_mut(), 0);
    }
}
