//! BPF programs and links in the kernel that no process holds: nothing can remove them but a new start.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

/// Commands of bpf(2): the next program and link after an identifier.
const NEXT: [(&str, libc::c_long); 2] = [("prog_id", 11), ("link_id", 31)];

/// A kind, as in /proc/PID/fdinfo, and an identifier.
type KernelObject = (&'static str, u32);

/// Returns the objects without a holder. Empty without the privilege to list them.
pub fn orphans() -> BTreeSet<KernelObject> {
    let all: BTreeSet<KernelObject> =
        NEXT.into_iter().flat_map(|(kind, command)| of_kind(kind, command)).collect();
    let held = held();
    // A link names its program in fdinfo, so that one descriptor shows both.
    all.into_iter().filter(|object| !held.contains(object)).collect()
}

/// Returns the objects that had a holder before, and have none for 20 s. Other tests of this machine begin and end too.
pub fn lasting_orphans(before: &BTreeSet<KernelObject>) -> BTreeSet<KernelObject> {
    let began = Instant::now();
    let mut left: BTreeSet<KernelObject> = orphans().difference(before).copied().collect();
    while !left.is_empty() && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(200));
        left = left.intersection(&orphans()).copied().collect();
    }
    left
}

fn of_kind(kind: &'static str, command: libc::c_long) -> Vec<KernelObject> {
    let (mut found, mut last) = (Vec::new(), 0u32);
    loop {
        // union bpf_attr: start_id, next_id, open_flags.
        let mut attributes = [last, 0, 0];
        let bytes = size_of_val(&attributes);
        // SAFETY: the kernel reads and writes the three numbers.
        let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_mut_ptr(), bytes) };
        if result != 0 {
            return found;
        }
        last = attributes[1];
        found.push((kind, last));
    }
}

/// Returns the objects to which some process has a descriptor.
fn held() -> BTreeSet<KernelObject> {
    let mut found = BTreeSet::new();
    let processes = fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path());
    for infos in processes.filter_map(|path| fs::read_dir(path.join("fdinfo")).ok()) {
        for text in infos.flatten().filter_map(|info| fs::read_to_string(info.path()).ok()) {
            for (kind, _) in NEXT {
                let number = text
                    .lines()
                    .find_map(|line| line.strip_prefix(kind)?.trim_start_matches(':').trim().parse().ok());
                found.extend(number.map(|number| (kind, number)));
            }
        }
    }
    found
}
