//! The settings of the kernel and of the block devices that change figures of writing and reading.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

/// Writeback of dirty pages (proc_sys_vm(5)).
const WRITEBACK: [&str; 6] = [
    "dirty_ratio",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_background_bytes",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
];
/// Attributes of a block device's queue (Documentation/ABI/stable/sysfs-block).
const QUEUE: [&str; 4] = ["scheduler", "write_cache", "read_ahead_kb", "rotational"];

/// Returns the settings by name: `vm.dirty_ratio`, `transparent_hugepage`, `vda.scheduler`. A setting that cannot be read is
/// left out. The devices are those of `directories`; a file system without a block device adds none.
pub fn settings<'a>(directories: impl IntoIterator<Item = &'a Path>) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let mut add = |name: String, path: PathBuf| {
        if let Ok(text) = fs::read_to_string(path) {
            settings.insert(name, chosen(text.trim()).to_string());
        }
    };
    for name in WRITEBACK {
        add(format!("vm.{name}"), Path::new("/proc/sys/vm").join(name));
    }
    add("transparent_hugepage".into(), "/sys/kernel/mm/transparent_hugepage/enabled".into());
    for device in directories.into_iter().filter_map(block_device) {
        let name = device.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for attribute in QUEUE {
            add(format!("{name}.{attribute}"), device.join("queue").join(attribute));
        }
    }
    settings
}

/// Returns the machine and the settings by name, for results other than those of weir bench. The device and the file
/// system are those of `directory`.
pub fn environment(directory: &Path) -> BTreeMap<String, String> {
    let machine = crate::machine::machine();
    let known = Some(directory).filter(|directory| weir_sys::file_system::is_usable(directory));
    let mut environment = settings(known);
    let mut add = |name: &str, value: String| environment.insert(name.into(), value);
    add("cpu", machine.cpu);
    add("cpus", machine.cpus.to_string());
    add("arch", machine.arch);
    add("kernel", machine.kernel);
    add("memory_bytes", machine.memory_bytes.to_string());
    if let Some(virtualization) = machine.virtualization {
        add("virtualization", virtualization);
    }
    if let Some(directory) = known {
        let (fs, options) = weir_sys::file_system::mount_of(directory);
        add("fs", fs);
        add("mount_options", options);
    }
    environment
}

/// Returns the chosen one of several values: `b` of `a [b] c`.
fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(chosen, _)| chosen)
}

/// Returns the directory of a path's block device in sysfs; for a partition that of the whole device.
fn block_device(path: &Path) -> Option<PathBuf> {
    let device = fs::metadata(path).ok()?.dev();
    let link = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    let directory = fs::canonicalize(link).ok()?;
    match directory.join("queue").is_dir() {
        true => Some(directory),
        false => directory.parent().filter(|parent| parent.join("queue").is_dir()).map(Path::to_path_buf),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_value_is_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] bfq"), "mq-deadline");
        assert_eq!(chosen("write back"), "write back");
    }

    #[test]
    fn this_kernel_shows_its_writeback() {
        let settings = settings([Path::new("/"), Path::new("/proc")]);
        assert!(settings.get("vm.dirty_expire_centisecs").is_some_and(|text| text.parse::<u64>().is_ok()));
        assert!(settings.values().all(|text| !text.contains(['[', '\n'])), "{settings:?}");
    }
}
