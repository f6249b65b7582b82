//! Tests the abilities that weir needs of this kernel, its privileges and its container: each by its own system call.

mod other_processes;

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use weir_model::doctor::{Doctor, EbpfHook, HostAbility};
use weir_sys::foreign_descriptors::{self, FORBIDDEN_ADVICE};
use weir_sys::user_namespace::{self, lacks_owner_of_root};
use weir_sys::{breakpoint, launch, proc, ptrace};

/// The file without which no BPF program of weir loads.
const BTF: &str = "/sys/kernel/btf/vmlinux";
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// Tries each ability by its own system call, which takes about a tenth of a second.
pub fn examine() -> Doctor {
    let name = rustix::system::uname();
    let (hooks, ebpf) = ebpf();
    let abilities = vec![
        ebpf,
        btf(),
        own_commands(),
        open_files(),
        other_processes::other_processes(),
        other_processes::proc_mount(),
        breakpoints(),
        user_dispatch(),
        io_uring(),
        dont_cache(),
        direct_alignment(),
        cache_statistics(),
    ];
    Doctor {
        kernel: name.release().to_string_lossy().into_owned(),
        arch: name.machine().to_string_lossy().into_owned(),
        uid: rustix::process::geteuid().as_raw(),
        user_namespace: user_namespace::is_first().map(|is_first| !is_first),
        abilities,
        hooks,
    }
}

/// Returns the hooks that the eBPF engine gets here, or why it does not work. `btf`: the file with the kernel's BTF.
pub fn ebpf_hooks(btf: Option<&Path>) -> Result<Vec<EbpfHook>, String> {
    let hooks = weir_trace_ebpf::hooks(btf).map_err(|error| error.to_string())?;
    let of = |choice: weir_trace_ebpf::HookChoice| EbpfHook {
        part: choice.ability.to_owned(),
        hook: choice.hook,
        refused: choice.refused,
    };
    Ok(hooks.into_iter().map(of).collect())
}

/// Makes an ability of its result: `detail` if it works, else the error and the advice.
fn ability(name: &'static str, detail: &str, result: Result<(), String>, advice: &str) -> HostAbility {
    let (works, detail) = match result {
        Ok(()) => (true, detail.to_owned()),
        Err(error) => (false, error),
    };
    HostAbility { name, tried: true, works, detail, advice: (!works).then(|| advice.to_owned()) }
}

/// Returns the error of a raw system call that returned `result`.
fn checked(call: &str, result: libc::c_long) -> Result<(), String> {
    if result >= 0 {
        return Ok(());
    }
    Err(format!("{call}: {}", weir_sys::error::errno_text(&io::Error::last_os_error())))
}

fn ebpf() -> (Vec<EbpfHook>, HostAbility) {
    let hooks = ebpf_hooks(None);
    let result = hooks.as_ref().map(drop).map_err(Clone::clone);
    let advice = match &result {
        Err(error) if error.contains("PID namespace") => {
            "weir trace uses ptrace here; --pid=host is the option of docker and podman"
        }
        Err(error) if error.contains("EPERM") && user_namespace::is_first() == Some(false) => {
            "weir trace uses ptrace here; root of a user namespace lacks the right: run weir outside of it, as root or with CAP_BPF \
             and CAP_PERFMON"
        }
        Err(error) if error.contains("EPERM") && rustix::process::geteuid().is_root() => {
            "weir trace uses ptrace here; this root lacks CAP_BPF and CAP_PERFMON: run weir outside of this container, or with \
             --cap-add BPF --cap-add PERFMON"
        }
        Err(error) if error.contains("EPERM") => {
            "weir trace uses ptrace here; run weir as root, or with CAP_BPF and CAP_PERFMON"
        }
        _ => "weir trace uses ptrace here; eBPF needs Linux 5.10 and BTF",
    };
    (hooks.unwrap_or_default(), ability("ebpf", "weir trace --engine ebpf", result, advice))
}

fn btf() -> HostAbility {
    let result = fs::metadata(BTF).map(drop).map_err(|error| format!("{BTF}: {error}"));
    let advice = "install a kernel with CONFIG_DEBUG_INFO_BTF; where only this file is hidden, weir trace --btf FILE takes a copy";
    ability("btf", BTF, result, advice)
}

/// Traces a child, which ends before it executes anything.
fn own_commands() -> HostAbility {
    let child = launch::start(&["true".into()]).map_err(|error| error.to_string());
    let result = child.and_then(|child| {
        ptrace::seize_for_lifecycle(child.pid)
            .map_err(|error| format!("ptrace(PTRACE_SEIZE): {}", weir_sys::error::errno_text(&error)))
    });
    let advice =
        "a container needs --cap-add SYS_PTRACE; a debugger or strace of weir takes the place of the tracer";
    let detail = match proc::is_mounted() {
        true if lacks_owner_of_root() => {
            "weir trace on own commands; not weir run: this user namespace has no number for the owner of /, so its library has no \
             safe directory. Outside of it this works: weir run -- unshare -r COMMAND"
        }
        true => "weir trace, weir run --rescue, weir run --max-delay on own commands",
        false => {
            "weir trace on own commands; without /proc weir run --rescue and --max-delay find no buffers"
        }
    };
    ability("ptrace", detail, result, advice)
}

/// Duplicates an own descriptor, as weir duplicates those of the programs for which it writes.
fn open_files() -> HostAbility {
    let result = match foreign_descriptors::forbidden() {
        None => Ok(()),
        Some(error) => Err(format!("pidfd_getfd: {}", weir_sys::error::errno_text(&error))),
    };
    let detail = match proc::is_mounted() {
        true if lacks_owner_of_root() => "weir flush writes to the open files of programs",
        true => "weir run and flush write to the open files of programs",
        false => "pidfd_getfd; without /proc weir run and flush find no bytes to write",
    };
    ability("open-files", detail, result, FORBIDDEN_ADVICE)
}

fn breakpoints() -> HostAbility {
    let address = examine as *const () as u64;
    let bytes = if cfg!(target_arch = "x86_64") { 8 } else { 4 };
    let event = breakpoint::attributes(HW_BREAKPOINT_X, address, bytes);
    let result = breakpoint::open(&event, 0)
        .map(drop)
        .map_err(|error| format!("perf_event_open: {}", weir_sys::error::errno_text(&error)));
    let paranoid = fs::read_to_string(PARANOID).ok().and_then(|level| level.trim().parse::<i32>().ok());
    let advice = match paranoid {
        Some(level) if level > 2 => format!("kernel.perf_event_paranoid is {level}: 2 or less is needed"),
        None => format!("{PARANOID}, which cannot be read, must be 2 or less"),
        _ => "a container needs a seccomp profile that allows perf_event_open(2); virtual machines may have no debug \
                  registers"
            .into(),
    };
    let advice = format!("needed to name who wrote pending bytes: {advice}");
    let detail = match proc::is_mounted() {
        true => "perf_event_open, PERF_TYPE_BREAKPOINT",
        false => "perf_event_open, PERF_TYPE_BREAKPOINT; without /proc there are no buffers to watch",
    };
    ability("breakpoints", detail, result, &advice)
}

/// HW_BREAKPOINT_X of linux/hw_breakpoint.h.
const HW_BREAKPOINT_X: u32 = 4;

fn user_dispatch() -> HostAbility {
    const PR_SET_SYSCALL_USER_DISPATCH: libc::c_int = 59;
    const OFF: libc::c_ulong = 0;
    // SAFETY: turning off a feature that is off changes nothing; the kernel rejects an unknown option with EINVAL.
    let off = unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, OFF, OFF, OFF, OFF) };
    let result = checked("prctl(PR_SET_SYSCALL_USER_DISPATCH)", off.into());
    let advice =
        "without it weir run refuses --coalesce; it exists from Linux 5.11 on, for weir on x86-64 only";
    let detail = match lacks_owner_of_root() {
        true => "prctl; weir run --coalesce needs a directory, see ptrace",
        false => "weir run --coalesce gathers calls that bypass the C library",
    };
    ability("user-dispatch", detail, result, advice)
}

fn io_uring() -> HostAbility {
    // struct io_uring_params has 120 bytes.
    let mut parameters = [0u8; 120];
    // SAFETY: `parameters` is a struct io_uring_params of zeros, which outlives the call.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
    let result = checked("io_uring_setup", fd);
    if fd >= 0 {
        // SAFETY: the descriptor is new, so nothing else owns it.
        unsafe { libc::close(fd as i32) };
    }
    let advice = match fs::read_to_string("/proc/sys/kernel/io_uring_disabled") {
        Ok(level) if level.trim() != "0" => "sysctl kernel.io_uring_disabled=0",
        Err(_) if !proc::is_mounted() => {
            "mount /proc and run weir doctor again: kernel.io_uring_disabled cannot be read without it"
        }
        _ => "it needs Linux 5.1, and in a container a seccomp profile that allows io_uring",
    };
    ability("io_uring", "weir bench --method io_uring", result, advice)
}

/// Writes a byte to a temporary file with RWF_DONTCACHE.
fn dont_cache() -> HostAbility {
    const RWF_DONTCACHE: libc::c_int = 0x80;
    let mut bytes = [0u8; 1];
    let byte = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let write = |file: File| {
        // SAFETY: the vector points to `bytes`, which outlives the call.
        let written = unsafe { libc::pwritev2(file.as_raw_fd(), &raw const byte, 1, 0, RWF_DONTCACHE) };
        checked("pwritev2(RWF_DONTCACHE)", written as libc::c_long)
    };
    let advice = "needs Linux 6.14 and a file system that supports it (ext4, xfs, btrfs); tried in the working directory";
    ability_of_file("rwf-dontcache", "in the working directory", (unnamed_file(), write), advice)
}

/// Tries an ability with a file in the working directory. `advice` is for a file that lacks it; without a file nothing was tried.
fn ability_of_file(
    name: &'static str,
    detail: &str,
    (file, act): (io::Result<File>, impl FnOnce(File) -> Result<(), String>),
    advice: &str,
) -> HostAbility {
    match file {
        Ok(file) => ability(name, detail, act(file), advice),
        Err(error) => HostAbility {
            name,
            tried: false,
            works: false,
            detail: not_tried(&error),
            advice: Some("run weir doctor in a directory in which you may create files, such as: cd /var/tmp; weir doctor".into()),
        },
    }
}

/// Returns why nothing was tried in the working directory.
fn not_tried(error: &io::Error) -> String {
    let directory = std::env::current_dir().unwrap_or_else(|_| ".".into());
    let directory = weir_model::escaped_lines(&directory.display().to_string());
    let error_text = weir_sys::error::errno_text(error);
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            format!("not tried: {directory} is not writable ({error_text})")
        }
        _ => format!("not tried: no file without a name in {directory} (open, O_TMPFILE: {error_text})"),
    }
}

/// Opens a file without a name in the working directory.
fn unnamed_file() -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let file =
        rustix::fs::open(".", OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
    Ok(File::from(file?))
}

fn direct_alignment() -> HostAbility {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    const STATX_DIOALIGN: u32 = 0x2000;
    let look = |file: File| {
        let status = statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::from_bits_retain(STATX_DIOALIGN));
        let mask = status.map_err(|error| format!("statx: {error}"))?.stx_mask;
        let told = mask & STATX_DIOALIGN != 0;
        if told { Ok(()) } else { Err("statx returns no STATX_DIOALIGN".to_owned()) }
    };
    let advice =
        "needs Linux 6.1 and ext4, xfs, f2fs or btrfs; weir then tries which alignment direct I/O needs";
    ability_of_file("statx-dioalign", "in the working directory", (unnamed_file(), look), advice)
}

fn cache_statistics() -> HostAbility {
    let look = |file: File| {
        let pages = weir_sys::page_cache::cached_pages(&file, 0, 0);
        pages.map(drop).map_err(|error| format!("cachestat: {}", weir_sys::error::errno_text(&error)))
    };
    let advice = "needs Linux 6.5; weir uses mincore(2) instead";
    let detail = "weir bench --cache checks what is cached";
    ability_of_file("cachestat", detail, (unnamed_file(), look), advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_file_nothing_is_said_of_the_kernel() {
        let denied = || Err(io::Error::from_raw_os_error(libc::EACCES));
        let tried = ability_of_file("cachestat", "detail", (denied(), |_| Ok(())), "needs Linux 6.5");
        assert!(
            !tried.works && !tried.tried && tried.detail.contains("is not writable (EACCES"),
            "{tried:?}"
        );
        assert!(tried.detail.starts_with("not tried: /"), "{tried:?}");
        assert!(tried.advice.is_some_and(|advice| advice.starts_with("run weir doctor in a directory")));
        let missing = || Err("cachestat: ENOSYS".to_owned());
        let lacks =
            ability_of_file("cachestat", "detail", (unnamed_file(), |_| missing()), "needs Linux 6.5");
        assert!(lacks.advice.is_some_and(|advice| advice.starts_with("needs") || !lacks.tried));
    }

    #[test]
    fn every_ability_has_a_line_and_every_missing_one_advice() {
        let doctor = examine();
        let names: Vec<_> = doctor.abilities.iter().map(|one| one.name).collect();
        let expected = [
            "ebpf",
            "btf",
            "ptrace",
            "open-files",
            "other-processes",
            "proc",
            "breakpoints",
            "user-dispatch",
            "io_uring",
            "rwf-dontcache",
            "statx-dioalign",
            "cachestat",
        ];
        assert_eq!(names, expected);
        assert!(
            doctor.abilities.iter().all(|one| one.works == one.advice.is_none() && !one.detail.is_empty())
        );
        let ebpf = doctor.abilities[0].works;
        assert_eq!(ebpf, !doctor.hooks.is_empty());
    }
}
