//! Capabilities of processes, see capabilities(7).

use std::sync::OnceLock;

const CAP_SYS_PTRACE: u64 = 1 << 19;

/// Returns whether this process has CAP_SYS_PTRACE, and the process `pid` has a capability that this one lacks. False if either is
/// unknown.
pub fn exceed_those_of_the_tracer(pid: u32) -> bool {
    static OWN: OnceLock<Option<u64>> = OnceLock::new();
    let own = OWN.get_or_init(|| field("self", "CapEff:"));
    own.is_some_and(|own| {
        own & CAP_SYS_PTRACE != 0 && field(&pid.to_string(), "CapPrm:").is_some_and(|its| exceeds(its, own))
    })
}

fn exceeds(its: u64, own: u64) -> bool {
    its & !own != 0
}

fn field(process: &str, name: &str) -> Option<u64> {
    mask(&std::fs::read_to_string(format!("/proc/{process}/status")).ok()?, name)
}

/// Returns a set of capabilities in the text of /proc/PID/status.
fn mask(status: &str, name: &str) -> Option<u64> {
    let text = status.lines().find_map(|line| line.strip_prefix(name))?;
    u64::from_str_radix(text.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_more_exceeds_and_a_subset_does_not() {
        let own = mask("Name:\ta\nCapEff:\t000001fffeffffff\n", "CapEff:").unwrap();
        assert!(exceeds(0x1ff_ffff_ffff, own), "CAP_SYS_RESOURCE");
        assert!(!exceeds(own, own) && !exceeds(0, own));
        assert_eq!(mask("CapPrm:\tx\n", "CapPrm:"), None);
        assert!(!exceed_those_of_the_tracer(std::process::id()));
    }
}
