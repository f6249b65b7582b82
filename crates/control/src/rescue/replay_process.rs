//! The process in which a dead thread is replayed: its memory, its pages, and its stops.

use std::collections::HashMap;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::ptrace;
use weir_sys::syscalls::SYSCALL_CODE;

const PAGE: u64 = 4096;
/// The most pages that one fault loads: neighbours are likely to be used too, and each fault costs ten system calls.
const BLOCK_PAGES: u64 = 16;
/// The address of the SYSCALL instruction by which the replay process maps pages. Programs map nothing so low.
const GATE: u64 = 0x10000;
/// INT3, the one-byte breakpoint.
const BREAKPOINT: u8 = 0xcc;
/// The end of the user address space with four page-table levels.
const USER_END: u64 = 0x7fff_ffff_f000;
/// PTRACE_SYSEMU of asm/ptrace-abi.h: resumes to the next system call, which is not made.
const PTRACE_SYSEMU: libc::c_uint = 31;
/// As PTRACE_SYSEMU, for one instruction.
const PTRACE_SYSEMU_SINGLESTEP: libc::c_uint = 32;
/// The signal of a syscall stop with PTRACE_O_TRACESYSGOOD.
const SYSCALL_STOP: i32 = libc::SIGTRAP | 0x80;
/// NT_X86_XSTATE: vector registers and other extended state (elf.h).
const XSTATE: usize = 0x202;
/// Room for the extended state of every present processor.
const MAX_XSTATE_BYTES: usize = 16 << 10;

/// The reason why the replayed thread stopped.
pub(super) enum ReplayStop {
    /// It reached the interpreter's loop.
    Interpreter,
    /// It used memory at this address, which is not loaded.
    MissingPage(u64),
    /// It is about to make a system call.
    Syscall,
    /// It has executed one instruction.
    Step,
}

/// A process that executes a dead thread. Dropping it kills the process.
pub(super) struct ReplayProcess {
    child: Child,
    dead: ProcessMemory,
    interpreter_code: Range<u64>,
    /// The loaded blocks: the first page and the number of bytes.
    blocks: Vec<(u64, usize)>,
}

/// The dead process's memory with the changes of a replay.
pub(crate) struct ReplayedMemory {
    dead: ProcessMemory,
    pages: HashMap<u64, Vec<u8>>,
    /// The writes that the replayed thread would have made.
    pub writes: Vec<ReplayedWrite>,
    pub end: ReplayEnd,
}

/// The event that ended a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplayEnd {
    /// The thread reached the interpreter's loop.
    Interpreter,
    /// It changed the word at this address.
    Noted(u64),
    /// It was about to write from this address to this descriptor.
    NextWrite(i32, u64),
    /// It was about to write the first pending byte of the stream whose note is at this address.
    FirstByte(u64),
}

/// A write that a replayed thread would have made.
pub(crate) struct ReplayedWrite {
    pub fd: i32,
    /// Address of the first byte.
    pub address: u64,
    pub bytes: Vec<u8>,
}

impl ReplayProcess {
    /// Starts a process and unmaps everything in it except the gate. It runs weir's image up to the first
    /// instruction only.
    pub fn start(tid: u32, interpreter_code: Range<u64>) -> Option<ReplayProcess> {
        let dead = ProcessMemory { pid: tid };
        if !dead.bytes(GATE, 1).is_empty() {
            return None;
        }
        let mut command = Command::new("/proc/self/exe");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: the closure makes one system call between fork and exec.
        unsafe {
            command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            })
        };
        let child = command.spawn().ok()?;
        let process = ReplayProcess { child, dead, interpreter_code, blocks: Vec::new() };
        let signal = wait_for_stop(process.pid(), |_| true)?;
        let options = libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACESYSGOOD;
        ptrace_request(libc::PTRACE_SETOPTIONS, process.pid(), 0, options as usize)?;
        let first = ptrace::registers(process.pid()).filter(|_| signal == libc::SIGTRAP)?.rip;
        let code = u64::from_le_bytes([SYSCALL_CODE[0], SYSCALL_CODE[1], 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc]);
        ptrace::poke(process.pid(), first, code);
        process.map(first, GATE, PAGE)?;
        ptrace::poke(process.pid(), GATE, code);
        let rest = GATE + PAGE;
        let unmapped = process.make_call(GATE, libc::SYS_munmap, [rest, USER_END - rest, 0, 0, 0, 0])?;
        (unmapped == 0).then_some(process)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Makes one system call by the SYSCALL instruction at `gate`, and restores the registers. The process must not be
    /// in a syscall stop.
    fn make_call(&self, gate: u64, number: i64, args: [u64; 6]) -> Option<i64> {
        let mut before = ptrace::registers(self.pid())?;
        let mut call = before;
        [call.rdi, call.rsi, call.rdx, call.r10, call.r8, call.r9] = args;
        (call.rip, call.rax, call.orig_rax) = (gate, number as u64, u64::MAX);
        ptrace::set_registers(self.pid(), &call).then_some(())?;
        ptrace_request(libc::PTRACE_SINGLESTEP, self.pid(), 0, 0)?;
        let signal = wait_for_stop(self.pid(), |_| true)?;
        let result = ptrace::registers(self.pid()).filter(|_| signal == libc::SIGTRAP)?.rax as i64;
        before.orig_rax = u64::MAX;
        ptrace::set_registers(self.pid(), &before).then_some(())?;
        Some(result)
    }

    fn map(&self, gate: u64, start: u64, bytes: u64) -> Option<()> {
        let protection = (libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC) as u64;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED) as u64;
        let mapped = self.make_call(gate, libc::SYS_mmap, [start, bytes, protection, flags, u64::MAX, 0])?;
        (mapped as u64 == start).then_some(())
    }

    /// Copies the page of an address, and the pages after it, from the dead process. Fails if it has no such page, or
    /// the page is loaded already.
    pub fn load_block(&mut self, address: u64) -> Option<()> {
        let start = address & !(PAGE - 1);
        let next_block = self.blocks.iter().map(|block| block.0).filter(|block| *block >= start).min();
        let most = next_block.map_or(BLOCK_PAGES, |next| BLOCK_PAGES.min((next - start) / PAGE));
        let mut bytes = self.dead.bytes(start, (most * PAGE) as usize);
        if bytes.is_empty() && most > 0 && is_clock_page(self.dead.pid, start) {
            // With a page of zeros the vDSO calls clock_gettime(2).
            bytes = vec![0; PAGE as usize];
        }
        bytes.truncate(bytes.len() / PAGE as usize * PAGE as usize);
        let is_loaded = |(first, length): &(u64, usize)| (*first..*first + *length as u64).contains(&start);
        if bytes.is_empty() || self.blocks.iter().any(is_loaded) {
            return None;
        }
        self.map(GATE, start, bytes.len() as u64)?;
        self.set_breakpoints(start, &mut bytes);
        ptrace::write_memory(self.pid(), start, &bytes).then_some(())?;
        self.blocks.push((start, bytes.len()));
        Some(())
    }

    /// Replaces the interpreter's instructions in a block by breakpoints.
    fn set_breakpoints(&self, start: u64, bytes: &mut [u8]) {
        let offset = |address: u64| (address.saturating_sub(start) as usize).min(bytes.len());
        let code = offset(self.interpreter_code.start)..offset(self.interpreter_code.end);
        bytes[code].fill(BREAKPOINT);
    }

    /// Runs the thread to its next stop. Fails if it ends, stops for another reason, or `goes_on` returns false for its
    /// PID when a timer has interrupted the wait.
    pub fn run_to_stop(&self, goes_on: impl Fn(u32) -> bool) -> Option<ReplayStop> {
        ptrace_request(PTRACE_SYSEMU, self.pid(), 0, 0)?;
        match wait_for_stop(self.pid(), goes_on)? {
            SYSCALL_STOP => Some(ReplayStop::Syscall),
            libc::SIGSEGV => fault_address(self.pid()).map(ReplayStop::MissingPage),
            libc::SIGTRAP => {
                let executed = ptrace::registers(self.pid())?.rip.wrapping_sub(1);
                self.interpreter_code.contains(&executed).then_some(ReplayStop::Interpreter)
            }
            _ => None,
        }
    }

    /// Executes one instruction; otherwise as [`Self::run_to_stop`].
    pub fn step(&self, goes_on: impl Fn(u32) -> bool) -> Option<ReplayStop> {
        ptrace_request(PTRACE_SYSEMU_SINGLESTEP, self.pid(), 0, 0)?;
        match wait_for_stop(self.pid(), goes_on)? {
            SYSCALL_STOP => Some(ReplayStop::Syscall),
            libc::SIGSEGV => fault_address(self.pid()).map(ReplayStop::MissingPage),
            libc::SIGTRAP => Some(ReplayStop::Step),
            _ => None,
        }
    }

    /// Returns a word of the replayed thread's memory; `before` if the thread has not used the word's page.
    pub fn word_of_thread(&self, address: u64, before: Option<u64>) -> Option<u64> {
        let contains = |(first, length): &(u64, usize)| (*first..*first + *length as u64).contains(&address);
        match self.blocks.iter().any(contains) {
            true => ProcessMemory { pid: self.pid() }.u64(address),
            false => before,
        }
    }

    /// Returns up to `bytes` bytes of the replayed thread's memory.
    pub fn bytes(&self, address: u64, bytes: usize) -> Vec<u8> {
        let replayed = ProcessMemory { pid: self.pid() };
        let has_page = |page: u64| {
            let contains = |(first, length): &(u64, usize)| (*first..*first + *length as u64).contains(&page);
            self.blocks.iter().any(contains)
        };
        let mut found = Vec::with_capacity(bytes.min(1 << 20));
        while found.len() < bytes {
            let Some(at) = address.checked_add(found.len() as u64) else { break };
            let length = ((PAGE - at % PAGE) as usize).min(bytes - found.len());
            let memory = if has_page(at) { replayed } else { self.dead };
            let part = memory.bytes(at, length);
            found.extend(&part);
            if part.len() < length {
                break;
            }
        }
        found
    }

    /// Copies the memory that the thread used, and kills the process.
    pub fn into_memory(self, writes: Vec<ReplayedWrite>, end: ReplayEnd) -> ReplayedMemory {
        let replayed = ProcessMemory { pid: self.pid() };
        let mut pages = HashMap::new();
        for (start, length) in &self.blocks {
            let bytes = replayed.bytes(*start, *length);
            let addresses = (*start..).step_by(PAGE as usize);
            let copied = addresses.zip(bytes.chunks_exact(PAGE as usize).map(<[u8]>::to_vec));
            // A page with breakpoints is code, which is unchanged.
            let has_breakpoints =
                |page: u64| page < self.interpreter_code.end && page + PAGE > self.interpreter_code.start;
            pages.extend(copied.filter(|(page, _)| !has_breakpoints(*page)));
        }
        ReplayedMemory { dead: self.dead, pages, writes, end }
    }
}

impl Memory for ReplayedMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            let offset = (at % PAGE) as usize;
            let length = (PAGE as usize - offset).min(into.len() - done);
            let part = &mut into[done..done + length];
            match self.pages.get(&(at - at % PAGE)) {
                Some(page) => part.copy_from_slice(&page[offset..offset + length]),
                None => {
                    let read = self.dead.read(at, part);
                    if read < length {
                        return done + read;
                    }
                }
            }
            done += length;
        }
        done
    }
}

impl Drop for ReplayProcess {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn ptrace_request(request: libc::c_uint, pid: u32, address: usize, data: usize) -> Option<()> {
    // SAFETY: the callers pass numbers, or pointers to live locals as large as the request needs.
    let result = unsafe { libc::ptrace(request, pid as libc::pid_t, address, data) };
    (result != -1).then_some(())
}

/// Returns the extended state of a stopped thread.
pub(super) fn extended_state(pid: u32) -> Option<Vec<u8>> {
    let mut bytes = vec![0u8; MAX_XSTATE_BYTES];
    let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    ptrace_request(libc::PTRACE_GETREGSET, pid, XSTATE, (&raw mut vector) as usize)?;
    bytes.truncate(vector.iov_len);
    Some(bytes)
}

/// Sets the extended state of a stopped thread; None if it has died.
pub(super) fn set_extended_state(pid: u32, bytes: &[u8]) -> Option<()> {
    let mut vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    ptrace_request(libc::PTRACE_SETREGSET, pid, XSTATE, (&raw mut vector) as usize)
}

/// Waits for a stop and returns its signal; None if the process has ended, or `goes_on` returns false for its PID after
/// an interruption.
fn wait_for_stop(pid: u32, goes_on: impl Fn(u32) -> bool) -> Option<i32> {
    loop {
        match ptrace::wait_for(pid) {
            Ok(Some(stop)) if libc::WIFSTOPPED(stop.status) => return Some(libc::WSTOPSIG(stop.status)),
            Ok(None) if goes_on(pid) => {}
            _ => return None,
        }
    }
}

/// Returns whether a page is one of the vDSO's data pages, which only the process itself can read.
fn is_clock_page(pid: u32, page: u64) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap_or(0);
    let mut clocks = maps.lines().filter(|line| line.contains("[vvar"));
    clocks.any(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        range.is_some_and(|(start, end)| (number(start)..number(end)).contains(&page))
    })
}

/// Returns the address of a page fault; None for another cause of SIGSEGV.
fn fault_address(pid: u32) -> Option<u64> {
    // struct siginfo: si_signo and si_errno, si_code, si_addr.
    let mut info = [0u64; 16];
    ptrace_request(libc::PTRACE_GETSIGINFO, pid, 0, info.as_mut_ptr() as usize)?;
    const SEGV_MAPERR: i32 = 1;
    (info[1] as i32 == SEGV_MAPERR).then_some(info[2])
}
