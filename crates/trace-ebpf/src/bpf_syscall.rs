//! bpf(2): the commands that load programs. aya's own loader decodes the kernel's whole BTF and probes every feature, which
//! takes twice as long as the rest of the start.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use aya_obj::Function;
use aya_obj::generated::{bpf_attach_type, bpf_attr, bpf_cmd, bpf_insn, bpf_prog_info, bpf_prog_type};

/// Size of the verifier's log at log level 1. Only its last lines are reported.
const LOG_BYTES: usize = 1 << 20;

fn zeroed() -> bpf_attr {
    // SAFETY: a union of integers and arrays of them, for which zero bytes are valid.
    unsafe { std::mem::zeroed() }
}

fn bpf(command: bpf_cmd, attr: &mut bpf_attr) -> io::Result<i64> {
    // SAFETY: `attr` is a valid bpf_attr, and the memory that it points to outlives the call.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command as libc::c_long, &raw mut *attr, size_of::<bpf_attr>())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Calls a command that returns a descriptor.
fn bpf_fd(command: bpf_cmd, attr: &mut bpf_attr) -> io::Result<OwnedFd> {
    let fd = bpf(command, attr)?;
    // SAFETY: the command has returned a new descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Loads BTF type information with BPF_BTF_LOAD of bpf(2).
pub(super) fn load_btf(btf: &[u8]) -> io::Result<OwnedFd> {
    let mut attr = zeroed();
    // SAFETY: all bytes of the union are initialized.
    let load = unsafe { &mut attr.__bindgen_anon_7 };
    load.btf = btf.as_ptr() as u64;
    load.btf_size = btf.len() as u32;
    bpf_fd(bpf_cmd::BPF_BTF_LOAD, &mut attr)
}

/// The parameters that all programs share.
pub(super) struct ProgramContext<'a> {
    pub license: &'a CStr,
    pub btf: BorrowedFd<'a>,
}

/// Purpose of a program, with the BTF number of its target.
#[derive(Clone, Copy)]
pub(super) enum ProgramKind {
    /// The number is that of the tracepoint's `btf_trace_` typedef.
    Tracepoint(u32),
    /// The entry of a kernel function.
    Function(u32),
    Kprobe,
}

/// Replaces the calls `calls` of a program by calls of kernel functions with these BTF numbers, or by no operations. aya does not
/// resolve them.
pub(super) fn resolve_kernel_calls(
    instructions: &mut [bpf_insn],
    calls: &[i32; 2],
    numbers: Option<[u32; 2]>,
) {
    const CALL: u8 = 0x85; // BPF_JMP | BPF_CALL
    const JUMP: u8 = 0x05; // BPF_JMP | BPF_JA; by 0: to the next instruction
    const KERNEL_FUNCTION: u8 = 2; // BPF_PSEUDO_KFUNC_CALL
    for instruction in instructions.iter_mut().filter(|one| one.code == CALL && one.src_reg() == 0) {
        let Some(index) = calls.iter().position(|&call| call == instruction.imm) else { continue };
        match numbers {
            Some(numbers) => {
                instruction.set_src_reg(KERNEL_FUNCTION);
                instruction.imm = numbers[index] as i32;
            }
            None => (instruction.code, instruction.imm) = (JUMP, 0),
        }
    }
}

/// BPF_PROG_LOAD. The error contains the last lines of the verifier's log, if any.
pub(super) fn load_program(
    name: &str,
    function: &Function,
    context: &ProgramContext<'_>,
    kind: ProgramKind,
) -> Result<OwnedFd, (io::Error, String)> {
    let load = |log: &mut [u8]| {
        let functions = function.func_info.func_info_bytes();
        let mut attr = zeroed();
        // SAFETY: all bytes of the union are initialized.
        let load = unsafe { &mut attr.__bindgen_anon_3 };
        for (to, from) in load.prog_name.iter_mut().zip(name.bytes().take(15)) {
            *to = from as libc::c_char;
        }
        let (program, attach, target) = match kind {
            ProgramKind::Tracepoint(target) => {
                (bpf_prog_type::BPF_PROG_TYPE_TRACING, bpf_attach_type::BPF_TRACE_RAW_TP as u32, target)
            }
            ProgramKind::Function(target) => {
                (bpf_prog_type::BPF_PROG_TYPE_TRACING, bpf_attach_type::BPF_TRACE_FENTRY as u32, target)
            }
            ProgramKind::Kprobe => (bpf_prog_type::BPF_PROG_TYPE_KPROBE, 0, 0),
        };
        load.prog_type = program as u32;
        load.expected_attach_type = attach;
        load.attach_btf_id = target;
        load.insns = function.instructions.as_ptr() as u64;
        load.insn_cnt = function.instructions.len() as u32;
        load.license = context.license.as_ptr() as u64;
        load.prog_btf_fd = context.btf.as_raw_fd() as u32;
        load.func_info = functions.as_ptr() as u64;
        load.func_info_cnt = function.func_info.len() as u32;
        load.func_info_rec_size = function.func_info_rec_size as u32;
        if !log.is_empty() {
            load.log_level = 1;
            load.log_buf = log.as_mut_ptr() as u64;
            load.log_size = log.len() as u32;
        }
        bpf_fd(bpf_cmd::BPF_PROG_LOAD, &mut attr)
    };
    load(&mut []).or_else(|error| {
        let mut log = vec![0; LOG_BYTES];
        load(&mut log).map_err(|_| (error, last_lines(&log)))
    })
}

fn last_lines(log: &[u8]) -> String {
    let text = super::shared_types::text(log);
    let lines: Vec<&str> = text.exact().lines().filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(4)..].join("; ")
}

/// BPF_RAW_TRACEPOINT_OPEN, also for the entry of a function. The program is attached until the returned descriptor is closed.
pub(super) fn attach(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut attr = zeroed();
    attr.raw_tracepoint.prog_fd = program.as_raw_fd() as u32;
    bpf_fd(bpf_cmd::BPF_RAW_TRACEPOINT_OPEN, &mut attr)
}

/// Returns how many runs of a program the kernel has skipped since it was loaded: a program does not run while a thread is
/// preempted in it on the same CPU. Returns 0 before Linux 5.12, which does not report the number.
pub(super) fn skipped_runs(program: BorrowedFd<'_>) -> u64 {
    // SAFETY: a struct of integers, for which zero bytes are valid.
    let mut info: bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut attr = zeroed();
    // SAFETY: all bytes of the union are initialized.
    let query = unsafe { &mut attr.info };
    query.bpf_fd = program.as_raw_fd() as u32;
    query.info_len = size_of::<bpf_prog_info>() as u32;
    query.info = &raw mut info as u64;
    bpf(bpf_cmd::BPF_OBJ_GET_INFO_BY_FD, &mut attr).map_or(0, |_| info.recursion_misses)
}

/// Sets the one entry of an array map and freezes the map, so that the verifier treats the entry as constant.
pub(super) fn fill_and_freeze(map: BorrowedFd<'_>, value: &[u8]) -> io::Result<()> {
    let (mut attr, key) = (zeroed(), 0u32);
    // SAFETY: all bytes of the union are initialized. `value` has the size of an entry, because both come from one section.
    let update = unsafe { &mut attr.__bindgen_anon_2 };
    update.map_fd = map.as_raw_fd() as u32;
    update.key = &raw const key as u64;
    update.__bindgen_anon_1.value = value.as_ptr() as u64;
    bpf(bpf_cmd::BPF_MAP_UPDATE_ELEM, &mut attr)?;
    let mut attr = zeroed();
    attr.__bindgen_anon_2.map_fd = map.as_raw_fd() as u32;
    bpf(bpf_cmd::BPF_MAP_FREEZE, &mut attr).map(drop)
}
