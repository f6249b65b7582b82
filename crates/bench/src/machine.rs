//! Describes the machine, so that figures of two machines can be compared.

use std::fs;

use weir_model::bench::Machine;

/// Returns the description of this machine.
pub fn machine() -> Machine {
    let uname = rustix::system::uname();
    let text = |c: &std::ffi::CStr| c.to_string_lossy().into_owned();
    let read = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_string());
    Machine {
        cpu: cpu_name(&read("/proc/cpuinfo").unwrap_or_default())
            .or_else(|| read("/proc/device-tree/model"))
            .unwrap_or_else(|| "unknown".into()),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        arch: text(uname.machine()),
        kernel: text(uname.release()),
        libc: libc_version(),
        memory_bytes: meminfo_bytes("MemTotal").unwrap_or(0),
        virtualization: virtualization(&read("/proc/cpuinfo").unwrap_or_default()),
        governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    }
}

fn cpu_name(cpuinfo: &str) -> Option<String> {
    let field = |name: &str| {
        cpuinfo
            .lines()
            .find(|line| line.starts_with(name))
            .and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim().to_string())
    };
    field("model name").or_else(|| field("Model")).filter(|name| !name.is_empty())
}

/// Returns a field of /proc/meminfo in bytes.
pub fn meminfo_bytes(field: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.split(':').next() == Some(field))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

fn libc_version() -> String {
    // The measured loops call the C library that is mapped into this process.
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let path = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| {
        path.rsplit('/').next().is_some_and(|file| {
            file.starts_with("libc.so") || file.starts_with("libc-") || file.starts_with("ld-musl")
        })
    });
    match path {
        Some(path) if path.contains("musl") => "musl".into(),
        Some(_) => format!("glibc {}", crate::ffi::glibc_version().unwrap_or_default()).trim().into(),
        None => match crate::ffi::glibc_version() {
            Some(version) => format!("glibc {version}, linked statically"),
            None => "a C library linked statically".into(),
        },
    }
}

fn virtualization(cpuinfo: &str) -> Option<String> {
    let vendor = fs::read_to_string("/sys/class/dmi/id/sys_vendor").ok();
    let hypervisor = cpuinfo.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor"));
    hypervisor.then(|| match vendor {
        Some(vendor) if !vendor.trim().is_empty() => format!("virtual machine ({})", vendor.trim()),
        _ => "virtual machine".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let machine = machine();
        assert!(
            machine.memory_bytes > 1 << 20
                && machine.cpus > 0
                && !machine.kernel.is_empty()
                && !machine.cpu.is_empty(),
            "{machine:?}"
        );
    }

    #[test]
    fn processors_of_both_kinds() {
        assert_eq!(cpu_name("processor : 0\nmodel name\t: AMD EPYC\n"), Some("AMD EPYC".into()));
        assert_eq!(cpu_name("Model\t: Raspberry Pi 5\n"), Some("Raspberry Pi 5".into()));
        assert_eq!(cpu_name(""), None);
    }
}
