//! What the kernel counts for a process by itself (/proc/PID/io), and who its descendants are.

use std::collections::HashMap;
use std::fs;

use weir_model::trace::IoTotals;

fn io_of(path: &str) -> Option<IoTotals> {
    let text = fs::read_to_string(path).ok()?;
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().parse().ok()
    };
    Some(IoTotals {
        read_calls: value("syscr")?,
        write_calls: value("syscw")?,
        read_bytes: value("rchar")?,
        written_bytes: value("wchar")?,
    })
}

/// The sum over the threads that live: a process's own counts without those of reaped children, which
/// /proc/PID/io has.
pub fn own(pid: u32) -> Option<IoTotals> {
    let mut sum = IoTotals::default();
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let Some(io) = io_of(&task.path().join("io").to_string_lossy()) else { continue };
        sum.read_calls += io.read_calls;
        sum.write_calls += io.write_calls;
        sum.read_bytes += io.read_bytes;
        sum.written_bytes += io.written_bytes;
    }
    Some(sum)
}

/// The process and all that descend from it, itself first.
pub fn with_descendants(pid: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for process in procfs::process::all_processes().into_iter().flatten().flatten() {
        if let Ok(stat) = process.stat() {
            children.entry(stat.ppid as u32).or_default().push(stat.pid as u32);
        }
    }
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(children.remove(&parent).unwrap_or_default());
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_counts_grow_with_a_read() {
        let before = own(std::process::id()).unwrap();
        fs::read("/proc/self/stat").unwrap();
        assert!(own(std::process::id()).unwrap().read_calls > before.read_calls);
    }

    #[test]
    fn a_child_is_a_descendant() {
        let mut child = std::process::Command::new("sleep").arg("5").spawn().unwrap();
        let found = with_descendants(std::process::id());
        assert_eq!(found[0], std::process::id());
        assert!(found.contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
