//! Replays a killed CPython thread in a new process until its streams are consistent.
//!
//! A kill can come between any two instructions of a flush: after a write(2) that the buffer has not noted, or while
//! bytes move from one layer to the next. Only the code itself can tell which bytes are written. So a new process gets
//! the dead process's memory, page by page on first access, and the thread's registers. It executes instruction by
//! instruction until the thread reaches the interpreter's loop. No system call is made: writes are recorded, a few
//! harmless calls are simulated, and any other call ends the replay.

use std::collections::HashMap;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use libc::user_regs_struct as Registers;
use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::ptrace;

const PAGE: u64 = 4096;
/// The address of the SYSCALL instruction by which the replay process maps pages. Programs map nothing so low.
const GATE: u64 = 0x10000;
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// The end of the user address space with four page-table levels.
const USER_END: u64 = 0x7fff_ffff_f000;
/// The most instructions of a replay; a flush of 8 KiB takes far fewer.
const MAX_STEPS: usize = 400_000;
/// NT_X86_XSTATE: vector registers and other extended state (elf.h).
const XSTATE: usize = 0x202;
/// Room for the extended state of every present processor.
const MAX_XSTATE_BYTES: usize = 16 << 10;

/// The registers of a thread that was killed.
#[derive(Clone)]
pub(crate) struct KilledThread {
    registers: Registers,
    extended_state: Vec<u8>,
}

impl KilledThread {
    /// Reads the registers of a thread in its exit stop; None if it ends by exit(2) or execve(2), or is gone. A call
    /// that a signal interrupted is set up to be made again.
    pub fn read(tid: u32) -> Option<KilledThread> {
        let mut registers = ptrace::registers(tid)?;
        let (number, result) = (registers.orig_rax as i64, registers.rax as i64);
        if matches!(number, libc::SYS_exit | libc::SYS_exit_group | libc::SYS_execve) {
            return None;
        }
        let not_made = matches!(result, -516..=-512) || result == -i64::from(libc::ENOSYS);
        if number >= 0 && (not_made || result == -i64::from(libc::EINTR)) {
            registers.rip = registers.rip.wrapping_sub(2);
            registers.rax = number as u64;
        }
        registers.orig_rax = u64::MAX;
        Some(KilledThread { registers, extended_state: extended_state(tid)? })
    }

    /// Returns the general registers that can hold a stream's address: all but the stack pointer.
    pub fn general_registers(&self) -> [u64; 15] {
        let r = &self.registers;
        [
            r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14,
            r.r15,
        ]
    }

    /// Returns the register that instructions encode by this number.
    pub fn register(&self, number: u8) -> u64 {
        let r = &self.registers;
        [
            r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13,
            r.r14, r.r15,
        ][usize::from(number & 15)]
    }

    pub fn instruction_pointer(&self) -> u64 {
        self.registers.rip
    }

    pub fn stack_pointer(&self) -> u64 {
        self.registers.rsp
    }

    /// Returns the thread as it would be after a write(2) with these arguments that wrote `bytes`.
    pub fn with_write(mut self, args: [u64; 6], bytes: u64) -> KilledThread {
        let r = &mut self.registers;
        [r.rdi, r.rsi, r.rdx] = [args[0], args[1], args[2]];
        r.rax = bytes;
        self
    }
}

/// A process that executes a dead thread. Dropping it kills the process.
pub(crate) struct ReplayProcess {
    child: Child,
    dead: ProcessMemory,
    /// The pages that the replay has, with the dead process's contents.
    pages: HashMap<u64, Vec<u8>>,
    /// The writes that the replay would have made: descriptor and bytes.
    pub writes: Vec<(i32, Vec<u8>)>,
}

/// Executes the thread until it reaches `interpreter_code`; None if it does not get there by itself.
pub(super) fn replay(
    tid: u32,
    thread: &KilledThread,
    interpreter_code: &Range<u64>,
) -> Option<ReplayProcess> {
    if interpreter_code.is_empty() || interpreter_code.contains(&thread.registers.rip) {
        return None;
    }
    let mut process = ReplayProcess::start(tid)?;
    set_extended_state(process.pid(), &thread.extended_state)?;
    ptrace::set_registers(process.pid(), &thread.registers).then_some(())?;
    for _ in 0..MAX_STEPS {
        let registers = ptrace::registers(process.pid())?;
        if interpreter_code.contains(&registers.rip) {
            return Some(process);
        }
        if process.instruction(registers.rip)? == SYSCALL {
            process.simulate_call(registers)?;
        } else {
            process.step()?;
        }
    }
    None
}

impl ReplayProcess {
    /// Starts a process and unmaps everything in it except the gate. It runs weir's image up to the first
    /// instruction only.
    fn start(tid: u32) -> Option<ReplayProcess> {
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
        let process = ReplayProcess { child, dead, pages: HashMap::new(), writes: Vec::new() };
        let signal = wait_for_stop(process.pid())?;
        ptrace_request(libc::PTRACE_SETOPTIONS, process.pid(), 0, libc::PTRACE_O_EXITKILL as usize)?;
        let first = ptrace::registers(process.pid()).filter(|_| signal == libc::SIGTRAP)?.rip;
        let code = u64::from_le_bytes([SYSCALL[0], SYSCALL[1], 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc]);
        ptrace::poke(process.pid(), first, code);
        process.map_page(first, GATE)?;
        ptrace::poke(process.pid(), GATE, code);
        let rest = GATE + PAGE;
        let unmapped = process.make_call(GATE, libc::SYS_munmap, [rest, USER_END - rest, 0, 0, 0, 0])?;
        (unmapped == 0).then_some(process)
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Makes one system call by the SYSCALL instruction at `gate`, and restores the registers.
    fn make_call(&self, gate: u64, number: i64, args: [u64; 6]) -> Option<i64> {
        let mut before = ptrace::registers(self.pid())?;
        let mut call = before;
        [call.rdi, call.rsi, call.rdx, call.r10, call.r8, call.r9] = args;
        (call.rip, call.rax, call.orig_rax) = (gate, number as u64, u64::MAX);
        ptrace::set_registers(self.pid(), &call).then_some(())?;
        ptrace_request(libc::PTRACE_SINGLESTEP, self.pid(), 0, 0)?;
        let signal = wait_for_stop(self.pid())?;
        let result = ptrace::registers(self.pid()).filter(|_| signal == libc::SIGTRAP)?.rax as i64;
        before.orig_rax = u64::MAX;
        ptrace::set_registers(self.pid(), &before).then_some(())?;
        Some(result)
    }

    fn map_page(&self, gate: u64, page: u64) -> Option<()> {
        let protection = (libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC) as u64;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED) as u64;
        let mapped = self.make_call(gate, libc::SYS_mmap, [page, PAGE, protection, flags, u64::MAX, 0])?;
        (mapped as u64 == page).then_some(())
    }

    /// Copies a page of the dead process.
    fn load_page(&mut self, page: u64) -> Option<()> {
        let mut bytes = self.dead.bytes(page, PAGE as usize);
        if bytes.is_empty() && is_clock_page(self.dead.pid, page) {
            // With a page of zeros the vDSO calls clock_gettime(2).
            bytes = vec![0; PAGE as usize];
        }
        if bytes.len() < PAGE as usize || self.pages.contains_key(&page) {
            return None;
        }
        self.map_page(GATE, page)?;
        ptrace::write_memory(self.pid(), page, &bytes).then_some(())?;
        self.pages.insert(page, bytes);
        Some(())
    }

    /// Returns the first two bytes of an instruction.
    fn instruction(&mut self, address: u64) -> Option<[u8; 2]> {
        Some([self.code_byte(address)?, self.code_byte(address + 1)?])
    }

    fn code_byte(&mut self, address: u64) -> Option<u8> {
        let page = address & !(PAGE - 1);
        if !self.pages.contains_key(&page) {
            self.load_page(page)?;
        }
        self.pages[&page].get((address - page) as usize).copied()
    }

    /// Executes one instruction, or loads the page that it lacks.
    fn step(&mut self) -> Option<()> {
        ptrace_request(libc::PTRACE_SINGLESTEP, self.pid(), 0, 0)?;
        match wait_for_stop(self.pid())? {
            libc::SIGTRAP => Some(()),
            libc::SIGSEGV => {
                let address = fault_address(self.pid())?;
                self.load_page(address & !(PAGE - 1))
            }
            _ => None,
        }
    }

    /// Stores weir's own time, as clock_gettime(2) does.
    fn store_time(&self, clock: u64, address: u64) -> Option<u64> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the call fills a struct of this frame.
        if unsafe { libc::clock_gettime(clock as libc::clockid_t, &mut time) } != 0 {
            return None;
        }
        let bytes = [time.tv_sec.to_le_bytes(), time.tv_nsec.to_le_bytes()].concat();
        ptrace::write_memory(self.pid(), address, &bytes).then_some(0)
    }

    /// Sets the result of a system call without making it; None for a call that a flush does not make.
    fn simulate_call(&mut self, mut registers: Registers) -> Option<()> {
        let result = match registers.rax as i64 {
            libc::SYS_write => {
                let length = usize::try_from(registers.rdx).ok().filter(|length| *length <= 1 << 30)?;
                let mut bytes = vec![0; length];
                (self.read(registers.rsi, &mut bytes) == length).then_some(())?;
                self.writes.push((registers.rdi as i32, bytes));
                length as u64
            }
            // The replay process has no other thread to wake.
            libc::SYS_futex if registers.rsi & 127 == libc::FUTEX_WAKE as u64 => 0,
            libc::SYS_clock_gettime => self.store_time(registers.rdi, registers.rsi)?,
            libc::SYS_madvise | libc::SYS_munmap | libc::SYS_rt_sigprocmask => 0,
            _ => return None,
        };
        registers.rip += 2;
        (registers.rax, registers.rcx, registers.r11) = (result, registers.rip, registers.eflags);
        ptrace::set_registers(self.pid(), &registers).then_some(())
    }
}

/// The dead process's memory with the changes of the replay.
impl Memory for ReplayProcess {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let replayed = ProcessMemory { pid: self.pid() };
        let mut done = 0;
        while done < into.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            let length = ((PAGE - at % PAGE) as usize).min(into.len() - done);
            let part = &mut into[done..done + length];
            let has_page = self.pages.contains_key(&(at - at % PAGE));
            let read = if has_page { replayed.read(at, part) } else { self.dead.read(at, part) };
            done += read;
            if read < length {
                break;
            }
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

fn extended_state(pid: u32) -> Option<Vec<u8>> {
    let mut bytes = vec![0u8; MAX_XSTATE_BYTES];
    let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    ptrace_request(libc::PTRACE_GETREGSET, pid, XSTATE, (&raw mut vector) as usize)?;
    bytes.truncate(vector.iov_len);
    Some(bytes)
}

fn set_extended_state(pid: u32, bytes: &[u8]) -> Option<()> {
    let mut vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    ptrace_request(libc::PTRACE_SETREGSET, pid, XSTATE, (&raw mut vector) as usize)
}

/// Waits for a stop and returns its signal; None if the process has ended.
fn wait_for_stop(pid: u32) -> Option<i32> {
    loop {
        match ptrace::wait_for(pid) {
            Ok(Some(stop)) if libc::WIFSTOPPED(stop.status) => return Some(libc::WSTOPSIG(stop.status)),
            Ok(None) => {}
            _ => return None,
        }
    }
}

/// Tells whether a page is one of the vDSO's data pages, which only the process itself can read.
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
