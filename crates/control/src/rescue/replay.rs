//! What a thread of CPython was in the middle of when it was killed, done to its end in a copy.
//!
//! A kill may come between any two instructions of a flush: behind the write(2) of which the buffer does not know yet,
//! or when bytes are on their way from one layer to the next. What is written then, and what is not, only the code
//! itself can tell. So a new process gets the dead one's memory, a page when it is first touched, and the thread's
//! registers, and runs on, instruction by instruction, until the interpreter would go on with the program. None of its
//! system calls is made: what it would write is kept, and everything else that could matter to somebody ends it.

use std::collections::HashMap;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use libc::user_regs_struct as Registers;
use weir_sys::memory::{Memory, ProcessMemory};
use weir_sys::ptrace;

const PAGE: u64 = 4096;
/// Where the copy has the instruction by which it is given its pages; programs have nothing so low.
const GATE: u64 = 0x10000;
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// No flush takes more instructions.
const STEPS_MOST: usize = 400_000;
/// Vector registers and the like.
const XSTATE: usize = 0x202;
const XSTATE_MOST: usize = 16 << 10;

/// A thread as it was killed.
#[derive(Clone)]
pub(crate) struct KilledThread {
    registers: Registers,
    vectors: Vec<u8>,
}

impl KilledThread {
    /// Of a thread in its exit stop; None where it ends by its own will, or is not known.
    pub fn of(tid: u32) -> Option<KilledThread> {
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
        Some(KilledThread { registers, vectors: vectors(tid)? })
    }

    /// All general registers that may hold an address.
    pub fn words(&self) -> [u64; 15] {
        let r = &self.registers;
        [
            r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14,
            r.r15,
        ]
    }

    /// The register that instructions call by this number.
    pub fn general(&self, number: u8) -> u64 {
        let r = &self.registers;
        [
            r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13,
            r.r14, r.r15,
        ][usize::from(number & 15)]
    }

    /// The instruction that comes next.
    pub fn at(&self) -> u64 {
        self.registers.rip
    }

    pub fn stack(&self) -> u64 {
        self.registers.rsp
    }

    /// As if it had just come back from a write of so many bytes, of which some were skipped.
    pub fn with_write(mut self, args: [u64; 6], bytes: u64) -> KilledThread {
        let r = &mut self.registers;
        [r.rdi, r.rsi, r.rdx] = [args[0], args[1], args[2]];
        r.rax = bytes;
        self
    }
}

/// The copy.
pub(crate) struct ReplayProcess {
    child: Child,
    dead: ProcessMemory,
    pages: HashMap<u64, Vec<u8>>,
    /// What it wrote, in order.
    pub written: Vec<(i32, Vec<u8>)>,
}

/// Runs the thread on until it is `outside`; None: it does not come there by itself.
pub(crate) fn replay(tid: u32, torn: &KilledThread, outside: &Range<u64>) -> Option<ReplayProcess> {
    if outside.is_empty() || outside.contains(&torn.registers.rip) {
        return None;
    }
    let mut life = ReplayProcess::new(tid)?;
    set_vectors(life.pid(), &torn.vectors)?;
    ptrace::set_registers(life.pid(), &torn.registers).then_some(())?;
    for _ in 0..STEPS_MOST {
        let now = ptrace::registers(life.pid())?;
        if outside.contains(&now.rip) {
            return Some(life);
        }
        if life.code(now.rip)? == SYSCALL { life.call(now)? } else { life.step()? }
    }
    None
}

impl ReplayProcess {
    /// With nothing in it but the gate.
    fn new(tid: u32) -> Option<ReplayProcess> {
        let dead = ProcessMemory { pid: tid };
        if !dead.bytes(GATE, 1).is_empty() {
            return None;
        }
        let mut command = Command::new("/proc/self/exe");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: one system call between fork and exec.
        unsafe {
            command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            })
        };
        // It stops at its first instruction, and never gets to the second.
        let child = command.spawn().ok()?;
        let life = ReplayProcess { child, dead, pages: HashMap::new(), written: Vec::new() };
        let stop = wait(life.pid())?;
        request(libc::PTRACE_SETOPTIONS, life.pid(), 0, libc::PTRACE_O_EXITKILL as usize)?;
        let first = ptrace::registers(life.pid()).filter(|_| stop == libc::SIGTRAP)?.rip;
        let word = u64::from_le_bytes([SYSCALL[0], SYSCALL[1], 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc]);
        ptrace::poke(life.pid(), first, word);
        life.map(first, GATE)?;
        ptrace::poke(life.pid(), GATE, word);
        const END: u64 = 0x7fff_ffff_f000;
        let from = GATE + PAGE;
        (life.make(GATE, libc::SYS_munmap, [from, END - from, 0, 0, 0, 0])? == 0).then_some(life)
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// One system call that is made.
    fn make(&self, from: u64, number: i64, args: [u64; 6]) -> Option<i64> {
        let mut before = ptrace::registers(self.pid())?;
        let mut with = before;
        [with.rdi, with.rsi, with.rdx, with.r10, with.r8, with.r9] = args;
        (with.rip, with.rax, with.orig_rax) = (from, number as u64, u64::MAX);
        ptrace::set_registers(self.pid(), &with).then_some(())?;
        request(libc::PTRACE_SINGLESTEP, self.pid(), 0, 0)?;
        let stop = wait(self.pid())?;
        let result = ptrace::registers(self.pid()).filter(|_| stop == libc::SIGTRAP)?.rax as i64;
        before.orig_rax = u64::MAX;
        ptrace::set_registers(self.pid(), &before).then_some(())?;
        Some(result)
    }

    fn map(&self, from: u64, page: u64) -> Option<()> {
        let access = (libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC) as u64;
        let how = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED) as u64;
        let got = self.make(from, libc::SYS_mmap, [page, PAGE, access, how, u64::MAX, 0])?;
        (got as u64 == page).then_some(())
    }

    /// The dead process's page, as it left it.
    fn load(&mut self, page: u64) -> Option<()> {
        let mut bytes = self.dead.bytes(page, PAGE as usize);
        if bytes.is_empty() && is_clock(self.dead.pid, page) {
            // It says then that the kernel is to be asked.
            bytes = vec![0; PAGE as usize];
        }
        if bytes.len() < PAGE as usize || self.pages.contains_key(&page) {
            return None;
        }
        self.map(GATE, page)?;
        ptrace::write_memory(self.pid(), page, &bytes).then_some(())?;
        self.pages.insert(page, bytes);
        Some(())
    }

    fn code(&mut self, at: u64) -> Option<[u8; 2]> {
        let byte = |life: &mut ReplayProcess, at: u64| {
            let page = at & !(PAGE - 1);
            if !life.pages.contains_key(&page) {
                life.load(page)?;
            }
            life.pages[&page].get((at - page) as usize).copied()
        };
        Some([byte(self, at)?, byte(self, at + 1)?])
    }

    fn step(&mut self) -> Option<()> {
        request(libc::PTRACE_SINGLESTEP, self.pid(), 0, 0)?;
        match wait(self.pid())? {
            libc::SIGTRAP => Some(()),
            libc::SIGSEGV => {
                let address = fault(self.pid())?;
                self.load(address & !(PAGE - 1))
            }
            _ => None,
        }
    }

    fn clock(&self, which: u64, into: u64) -> Option<u64> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: fills it.
        if unsafe { libc::clock_gettime(which as libc::clockid_t, &mut time) } != 0 {
            return None;
        }
        let bytes = [time.tv_sec.to_le_bytes(), time.tv_nsec.to_le_bytes()].concat();
        ptrace::write_memory(self.pid(), into, &bytes).then_some(0)
    }

    /// A system call that is not made.
    fn call(&mut self, mut now: Registers) -> Option<()> {
        let result = match now.rax as i64 {
            libc::SYS_write => {
                let mut bytes = vec![0; usize::try_from(now.rdx).ok().filter(|bytes| *bytes <= 1 << 30)?];
                (self.read(now.rsi, &mut bytes) == bytes.len()).then_some(())?;
                let length = bytes.len() as u64;
                self.written.push((now.rdi as i32, bytes));
                length
            }
            // It would wake others, of whom there are none here.
            libc::SYS_futex if now.rsi & 127 == libc::FUTEX_WAKE as u64 => 0,
            libc::SYS_clock_gettime => self.clock(now.rdi, now.rsi)?,
            libc::SYS_madvise | libc::SYS_munmap | libc::SYS_rt_sigprocmask => 0,
            _ => return None,
        };
        now.rip += 2;
        (now.rax, now.rcx, now.r11) = (result, now.rip, now.eflags);
        ptrace::set_registers(self.pid(), &now).then_some(())
    }
}

/// The dead process's memory with what was changed since.
impl Memory for ReplayProcess {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let living = ProcessMemory { pid: self.pid() };
        let mut done = 0;
        while done < into.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            let here = ((PAGE - at % PAGE) as usize).min(into.len() - done);
            let part = &mut into[done..done + here];
            let changed = self.pages.contains_key(&(at - at % PAGE));
            let got = if changed { living.read(at, part) } else { self.dead.read(at, part) };
            done += got;
            if got < here {
                break;
            }
        }
        done
    }
}

impl Drop for ReplayProcess {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

fn request(request: libc::c_uint, pid: u32, address: usize, data: usize) -> Option<()> {
    // SAFETY: the callers pass numbers, or pointers to live locals as large as the request needs.
    let answer = unsafe { libc::ptrace(request, pid as libc::pid_t, address, data) };
    (answer != -1).then_some(())
}

fn vectors(pid: u32) -> Option<Vec<u8>> {
    let mut bytes = vec![0u8; XSTATE_MOST];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    request(libc::PTRACE_GETREGSET, pid, XSTATE, (&raw mut part) as usize)?;
    bytes.truncate(part.iov_len);
    Some(bytes)
}

fn set_vectors(pid: u32, bytes: &[u8]) -> Option<()> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    request(libc::PTRACE_SETREGSET, pid, XSTATE, (&raw mut part) as usize)
}

/// The signal that it stopped by; None: it is no more.
fn wait(pid: u32) -> Option<i32> {
    loop {
        match ptrace::wait_for(pid) {
            Ok(Some(stop)) if libc::WIFSTOPPED(stop.status) => return Some(libc::WSTOPSIG(stop.status)),
            Ok(None) => {}
            _ => return None,
        }
    }
}

/// Whether a page is one by which the kernel tells the time, which nobody but the process itself can read.
fn is_clock(pid: u32, page: u64) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap_or(0);
    let mut clocks = maps.lines().filter(|line| line.contains("[vvar"));
    clocks.any(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        range.is_some_and(|(start, end)| (number(start)..number(end)).contains(&page))
    })
}

/// The address that it has no page at.
fn fault(pid: u32) -> Option<u64> {
    // struct siginfo: si_signo and si_errno, si_code, si_addr.
    let mut about = [0u64; 16];
    request(libc::PTRACE_GETSIGINFO, pid, 0, about.as_mut_ptr() as usize)?;
    (about[1] as i32 == 1).then_some(about[2])
}
