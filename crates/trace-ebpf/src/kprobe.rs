//! Attaches a BPF program to a kprobe by perf_event_open(2).

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use aya_obj::generated::{self, perf_event_attr};

/// The number of the kprobe PMU, as text. The kernel has it with CONFIG_KPROBE_EVENTS.
const TYPE: &str = "/sys/bus/event_source/devices/kprobe/type";
/// PERF_EVENT_IOC_ENABLE and PERF_EVENT_IOC_SET_BPF of linux/perf_event.h.
const ENABLE: libc::c_ulong = 0x2400;
const SET_BPF: libc::c_ulong = 0x4004_2408;

/// Runs the program at the entry of a kernel function on every CPU, until the returned descriptor is closed.
pub(super) fn attach(program: BorrowedFd<'_>, function: &str) -> io::Result<OwnedFd> {
    let number = fs::read_to_string(TYPE)?;
    let number = number.trim().parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    let name = std::ffi::CString::new(function)?;
    // SAFETY: a struct of integers and unions of integers, for which all zeros is valid.
    let mut event: perf_event_attr = unsafe { std::mem::zeroed() };
    event.type_ = number;
    event.size = size_of::<perf_event_attr>() as u32;
    event.__bindgen_anon_3.kprobe_func = name.as_ptr() as u64;
    let event = open(&event)?;
    control(&event, SET_BPF, program.as_raw_fd() as libc::c_ulong)?;
    control(&event, ENABLE, 0)?;
    Ok(event)
}

/// Opens the event for all processes. A BPF program of a kprobe runs on every CPU, whichever CPU its event is opened for.
fn open(event: &perf_event_attr) -> io::Result<OwnedFd> {
    let (pid, cpu, group, flags) = (-1, 0, -1, libc::c_ulong::from(generated::PERF_FLAG_FD_CLOEXEC));
    // SAFETY: `event`, and the name that it points to, outlive the call; the other arguments are numbers.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, event, pid, cpu, group, flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

fn control(event: &OwnedFd, request: libc::c_ulong, argument: libc::c_ulong) -> io::Result<()> {
    // SAFETY: these ioctl(2) requests take an integer.
    let answer = unsafe { libc::ioctl(event.as_raw_fd(), request as _, argument) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
