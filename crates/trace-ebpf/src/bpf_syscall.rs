//! bpf(2): the few commands that load programs. aya has them as well, but its loader takes the kernel's whole BTF
//! apart and asks for every feature first, which takes twice as long as everything else.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use aya_obj::Function;
use aya_obj::generated::{bpf_attach_type, bpf_attr, bpf_cmd, bpf_prog_type};

/// Room for what the verifier says.
const LOG_BYTES: usize = 1 << 20;

/// An attribute of which nothing is said yet.
fn nothing() -> bpf_attr {
    // SAFETY: a union of integers and arrays of them: all zeros are one.
    unsafe { std::mem::zeroed() }
}

fn command(command: bpf_cmd, attr: &mut bpf_attr) -> io::Result<i64> {
    // SAFETY: `attr` is what the kernel expects for bpf(2), and what it points to lives as long as the call.
    let answer = unsafe {
        libc::syscall(libc::SYS_bpf, command as libc::c_long, &raw mut *attr, size_of::<bpf_attr>())
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// For the commands that return a descriptor.
fn descriptor(which: bpf_cmd, attr: &mut bpf_attr) -> io::Result<OwnedFd> {
    let fd = command(which, attr)?;
    // SAFETY: these commands return a new descriptor, which nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Gives the kernel the types of the programs.
pub(super) fn load_types(btf: &[u8]) -> io::Result<OwnedFd> {
    let mut attr = nothing();
    // SAFETY: all of the union's integers are set; that is what a write to one of its members does.
    let asked = unsafe { &mut attr.__bindgen_anon_7 };
    asked.btf = btf.as_ptr() as u64;
    asked.btf_size = btf.len() as u32;
    descriptor(bpf_cmd::BPF_BTF_LOAD, &mut attr)
}

/// What is common to the programs.
pub(super) struct Common<'a> {
    pub license: &'a CStr,
    pub types: BorrowedFd<'a>,
}

/// Loads a program for the tracepoint whose handler has this number. The error has the last words of the verifier,
/// if there are any.
pub(super) fn load_program(
    name: &str,
    function: &Function,
    common: &Common<'_>,
    handler: u32,
) -> Result<OwnedFd, (io::Error, String)> {
    let load = |log: &mut [u8]| {
        let functions = function.func_info.func_info_bytes();
        let mut attr = nothing();
        // SAFETY: as above.
        let asked = unsafe { &mut attr.__bindgen_anon_3 };
        for (to, from) in asked.prog_name.iter_mut().zip(name.bytes().take(15)) {
            *to = from as libc::c_char;
        }
        asked.prog_type = bpf_prog_type::BPF_PROG_TYPE_TRACING as u32;
        asked.expected_attach_type = bpf_attach_type::BPF_TRACE_RAW_TP as u32;
        asked.attach_btf_id = handler;
        asked.insns = function.instructions.as_ptr() as u64;
        asked.insn_cnt = function.instructions.len() as u32;
        asked.license = common.license.as_ptr() as u64;
        asked.prog_btf_fd = common.types.as_raw_fd() as u32;
        asked.func_info = functions.as_ptr() as u64;
        asked.func_info_cnt = function.func_info.len() as u32;
        asked.func_info_rec_size = function.func_info_rec_size as u32;
        if !log.is_empty() {
            asked.log_level = 1;
            asked.log_buf = log.as_mut_ptr() as u64;
            asked.log_size = log.len() as u32;
        }
        descriptor(bpf_cmd::BPF_PROG_LOAD, &mut attr)
    };
    load(&mut []).or_else(|error| {
        let mut log = vec![0; LOG_BYTES];
        load(&mut log).map_err(|_| (error, last_words(&log)))
    })
}

fn last_words(log: &[u8]) -> String {
    let text = super::wire::text(log);
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(4)..].join("; ")
}

/// The program runs from now on, until what is returned is dropped.
pub(super) fn attach(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut attr = nothing();
    attr.raw_tracepoint.prog_fd = program.as_raw_fd() as u32;
    descriptor(bpf_cmd::BPF_RAW_TRACEPOINT_OPEN, &mut attr)
}

/// Sets the one entry of a map and lets nobody change it any more: the verifier then knows what it is.
pub(super) fn fill_and_freeze(map: BorrowedFd<'_>, value: &[u8]) -> io::Result<()> {
    let (mut attr, key) = (nothing(), 0u32);
    // SAFETY: as above; aya made the map of this size.
    let asked = unsafe { &mut attr.__bindgen_anon_2 };
    asked.map_fd = map.as_raw_fd() as u32;
    asked.key = &raw const key as u64;
    asked.__bindgen_anon_1.value = value.as_ptr() as u64;
    command(bpf_cmd::BPF_MAP_UPDATE_ELEM, &mut attr)?;
    let mut attr = nothing();
    attr.__bindgen_anon_2.map_fd = map.as_raw_fd() as u32;
    command(bpf_cmd::BPF_MAP_FREEZE, &mut attr).map(drop)
}
