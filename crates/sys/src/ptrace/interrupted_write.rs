//! A write(2) after which a thread executes a signal handler: the handler can end the process before the stream notes what was
//! written.
//!
//! A signal ends a write to a full pipe after a part of its bytes. The kernel then puts the registers of the return from the call
//! on the stack (`struct rt_sigframe` of arch/x86/include/asm/sigframe.h), and the thread executes the handler. The memory of the
//! stack is the program's, so each field must agree with the others. An old frame in unused memory differs: while a handler runs,
//! more signals are blocked than the frame says.

use super::last_write::LastWrite;

/// Reads the write after which a thread in its exit stop executes a signal handler; None if it executes none.
#[cfg(target_arch = "x86_64")]
pub fn of_thread(tid: u32) -> Option<LastWrite> {
    let blocked = blocked_signals(tid).filter(|blocked| *blocked != 0)?;
    let stack_pointer = super::registers(tid)?.rsp;
    x86_64::find(&crate::memory::ProcessMemory { pid: tid }, stack_pointer, blocked)
}

/// Returns None: the first argument is overwritten by the result, so nothing shows which descriptor was written.
#[cfg(not(target_arch = "x86_64"))]
pub fn of_thread(_tid: u32) -> Option<LastWrite> {
    None
}

/// Returns the signals that a stopped tracee blocks, as bits from that of signal 1 on; None if it has died.
#[cfg(target_arch = "x86_64")]
fn blocked_signals(tid: u32) -> Option<u64> {
    const PTRACE_GETSIGMASK: i64 = 0x420a;
    let mut mask = 0u64;
    super::ptrace(PTRACE_GETSIGMASK, tid, size_of_val(&mask), (&raw mut mask) as usize).ok()?;
    Some(mask)
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use crate::iovec;
    use crate::memory::Memory;
    use crate::ptrace::last_write::{LastWrite, MAX_SEGMENTS};
    use crate::syscalls::SYSCALL_CODE;

    /// How much of the stack is searched: more than the frames of an ordinary handler need.
    const MAX_STACK: usize = 64 << 10;
    /// The words of `struct sigcontext_64`, and of the signal mask that follows it in `struct ucontext`.
    const DESCRIPTOR: usize = 8;
    const ADDRESS: usize = 9;
    const COUNT: usize = 12;
    const RESULT: usize = 13;
    const RETURNED_TO: usize = 14;
    const STACK_POINTER: usize = 15;
    const NEXT: usize = 16;
    const MASK: usize = 32;
    const WORDS: usize = MASK + 1;
    /// The words of `struct ucontext` before it, which begin with the flags: the stack of the handlers and its size.
    const BEFORE: usize = 5;
    const OWN_STACK: usize = 2;
    const OWN_STACK_BYTES: usize = 4;

    pub(super) fn find(memory: &dyn Memory, stack_pointer: u64, blocked: u64) -> Option<LastWrite> {
        let start = stack_pointer.next_multiple_of(8);
        let stack = memory.bytes(start, MAX_STACK);
        let words: Vec<u64> = stack.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        words.windows(BEFORE + WORDS).enumerate().find_map(|(index, words)| {
            let frame = &words[BEFORE..];
            let is_handler = frame[MASK] & !blocked == 0 && frame[MASK] != blocked;
            // SYSCALL puts the address to which it returns into RCX. A call that is made again after the handler begins before it.
            let call = frame[RETURNED_TO].checked_sub(SYSCALL_CODE.len() as u64)?;
            let is_again = frame[NEXT] == call;
            let is_call = || memory.bytes(call, SYSCALL_CODE.len()) == SYSCALL_CODE;
            let is_own = is_handler && is_of_stack(stack_pointer, start + 8 * index as u64, words);
            let agrees = is_own && (is_again || frame[NEXT] == frame[RETURNED_TO]) && is_call();
            agrees.then(|| if is_again { repeated(memory, frame) } else { written(memory, frame) })?
        })
    }

    /// Returns whether the frame at an address is of the handler that uses this stack. The stack of the interrupted code is the same and
    /// ends above the frame, or the handler has a stack of its own (sigaltstack(2)). Other memory near it can have frames of other
    /// threads.
    fn is_of_stack(stack_pointer: u64, at: u64, words: &[u64]) -> bool {
        let own = words[OWN_STACK]..words[OWN_STACK].saturating_add(words[OWN_STACK_BYTES]);
        let interrupted = words[BEFORE + STACK_POINTER];
        match own.contains(&at) {
            true => own.contains(&stack_pointer) && (interrupted > at || !own.contains(&interrupted)),
            false => interrupted > at,
        }
    }

    /// Reads a write(2) or writev(2) that has written nothing and is made again. The kernel puts its number in the place of the result.
    fn repeated(memory: &dyn Memory, frame: &[u64]) -> Option<LastWrite> {
        let number = i64::try_from(frame[RESULT]).ok()?;
        let segments = match number {
            libc::SYS_write => vec![(frame[ADDRESS], frame[COUNT])],
            libc::SYS_writev => vector(memory, frame),
            _ => return None,
        };
        Some(LastWrite::InCall { fd: i32::try_from(frame[DESCRIPTOR]).ok()?, segments, bytes: 0 })
    }

    fn vector(memory: &dyn Memory, frame: &[u64]) -> Vec<(u64, u64)> {
        iovec::read(memory, frame[ADDRESS], frame[COUNT], MAX_SEGMENTS)
    }

    fn written(memory: &dyn Memory, frame: &[u64]) -> Option<LastWrite> {
        let (fd, bytes) = (i32::try_from(frame[DESCRIPTOR]).ok()?, frame[RESULT]);
        let (address, count) = (frame[ADDRESS], frame[COUNT]);
        let segments = match bytes <= count {
            true => vec![(address, count)],
            // writev(2) has the number of segments.
            false => vector(memory, frame),
        };
        let total = segments.iter().fold(0, |total: u64, segment| total.saturating_add(segment.1));
        (1..=total).contains(&bytes).then_some(LastWrite::InCall { fd, segments, bytes })
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::ptrace::last_write::tests::{BASE, Bytes};

        /// A frame at word 10 after a write of 40 of 100 bytes to descriptor 3, and a `syscall` instruction at word 80.
        fn frame() -> Vec<u64> {
            let mut words = vec![0; 96];
            let returned_to = BASE + 8 * 80 + 2;
            for (word, value) in [
                (DESCRIPTOR, 3),
                (ADDRESS, 0x5000),
                (COUNT, 100),
                (RESULT, 40),
                (RETURNED_TO, returned_to),
                (STACK_POINTER, BASE + 8 * 70),
                (NEXT, returned_to),
                (MASK, 1 << 1),
            ] {
                words[10 + word] = value;
            }
            words[80] = 0x050f;
            words
        }

        const BLOCKED: u64 = 1 << 1 | 1 << 13;

        /// Descriptor, segments and written bytes.
        type Write = (i32, Vec<(u64, u64)>, u64);

        fn found(words: &[u64], blocked: u64) -> Option<Write> {
            let memory = Bytes(words.iter().flat_map(|word| word.to_le_bytes()).collect());
            match find(&memory, BASE, blocked)? {
                LastWrite::InCall { fd, segments, bytes } => Some((fd, segments, bytes)),
                LastWrite::InUserMode(_) => None,
            }
        }

        #[test]
        fn a_short_write_is_found_below_its_handler() {
            assert_eq!(found(&frame(), BLOCKED), Some((3, vec![(0x5000, 100)], 40)));
        }

        /// The scheduler of Go interrupts a write that waits for room in a pipe; killed in the handler, weir said nothing about the bytes
        /// that this write would have written.
        #[test]
        fn a_write_that_is_made_again_has_written_nothing() {
            let mut words = frame();
            words[10 + NEXT] -= 2;
            assert_eq!(found(&words, BLOCKED), None, "the result of another call");
            words[10 + RESULT] = libc::SYS_write as u64;
            assert_eq!(found(&words, BLOCKED), Some((3, vec![(0x5000, 100)], 0)));
            (words[10 + ADDRESS], words[10 + COUNT]) = (BASE + 8 * 60, 2);
            words[10 + RESULT] = libc::SYS_writev as u64;
            words[60..64].copy_from_slice(&[0x7000, 50, 0x8000, 50]);
            assert_eq!(found(&words, BLOCKED), Some((3, vec![(0x7000, 50), (0x8000, 50)], 0)));
        }

        #[test]
        fn a_handler_can_have_a_stack_of_its_own() {
            for interrupted in [BASE - 4096, BASE + (1 << 30)] {
                let mut words = frame();
                words[10 + STACK_POINTER] = interrupted;
                (words[10 - BEFORE + OWN_STACK], words[10 - BEFORE + OWN_STACK_BYTES]) = (BASE - 64, 1024);
                assert!(found(&words, BLOCKED).is_some());
                words[10 - BEFORE + OWN_STACK] = BASE + 8;
                assert_eq!(found(&words, BLOCKED), None, "of another thread");
            }
        }

        #[test]
        fn a_frame_is_rejected_unless_all_its_fields_agree() {
            assert_eq!(found(&frame(), 1 << 1), None, "the handler has returned");
            assert_eq!(found(&frame(), 1 << 13), None, "another mask");
            let wrong = [
                (DESCRIPTOR, 1 << 40),
                (RESULT, 0),
                (RESULT, -4_i64 as u64),
                (RETURNED_TO, 7),
                (STACK_POINTER, BASE),
                (NEXT, BASE),
            ];
            for (word, value) in wrong {
                let mut words = frame();
                words[10 + word] = value;
                assert_eq!(found(&words, BLOCKED), None, "{word}: {value:#x}");
            }
            let mut words = frame();
            words[80] = 0;
            assert_eq!(found(&words, BLOCKED), None, "no system call");
        }

        #[test]
        fn a_vector_is_read() {
            let mut words = frame();
            (words[10 + ADDRESS], words[10 + COUNT], words[10 + RESULT]) = (BASE + 8 * 60, 2, 90);
            words[60..64].copy_from_slice(&[0x7000, 50, 0x8000, 50]);
            assert_eq!(found(&words, BLOCKED), Some((3, vec![(0x7000, 50), (0x8000, 50)], 90)));
            words[10 + RESULT] = 101;
            assert_eq!(found(&words, BLOCKED), None, "more than there is");
        }
    }
}
