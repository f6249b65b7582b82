//! Detects load from other processes and throttling: compares counters of /proc and /sys before and after a round.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use weir_model::bench::Round;

/// Shares of a round above which it counts as disturbed.
const MAX_STEAL: f64 = 0.02;
const MAX_FOREIGN_CPU: f64 = 0.10;
const MAX_PRESSURE_CPU: f64 = 0.10;
const MAX_PRESSURE_MEMORY: f64 = 0.05;
/// Least seconds of a round whose shares are judged: a tick is 10 ms, so a few ticks are a large share of a shorter round.
const SHORTEST_JUDGED_S: f64 = 0.5;

/// The machine's counters at one moment.
#[derive(Debug, Clone)]
pub struct MachineCounters {
    at: Instant,
    /// Ticks of all processors: in use, stolen by the hypervisor, and in total.
    busy: u64,
    stolen: u64,
    all: u64,
    /// Ticks used by this process and its reaped children.
    ours: u64,
    /// Microseconds in which some task waited for: a processor, a device, memory.
    pressure: [Option<u64>; 3],
    throttled_us: u64,
    thermal_events: u64,
}

impl MachineCounters {
    /// Reads the counters from /proc and /sys. A counter that cannot be read is 0 or `None`.
    pub fn now() -> Self {
        let (busy, stolen, all) = cpu_ticks(&read("/proc/stat"));
        Self {
            at: Instant::now(),
            busy,
            stolen,
            all,
            ours: own_ticks(&read("/proc/self/stat")),
            pressure: ["cpu", "io", "memory"]
                .map(|resource| pressure_us(&read(&format!("/proc/pressure/{resource}")))),
            throttled_us: throttled_us(),
            thermal_events: thermal_events(),
        }
    }

    /// Returns the round between `self` and `end`.
    pub fn round_until(&self, end: &Self, samples: usize) -> Round {
        let took_s = end.at.duration_since(self.at).as_secs_f64();
        let ticks = (end.all.saturating_sub(self.all)).max(1) as f64;
        let foreign = (end.busy.saturating_sub(self.busy)).saturating_sub(end.ours.saturating_sub(self.ours));
        let pressure_share = |resource: usize| {
            let us = end.pressure[resource]?.saturating_sub(self.pressure[resource]?);
            Some(us as f64 / 1e6 / took_s.max(1e-9))
        };
        let mut round = Round {
            samples,
            took_s,
            steal: end.stolen.saturating_sub(self.stolen) as f64 / ticks,
            foreign_cpu: foreign as f64 / ticks,
            pressure_cpu: pressure_share(0),
            pressure_io: pressure_share(1),
            pressure_memory: pressure_share(2),
            throttled_us: end.throttled_us.saturating_sub(self.throttled_us),
            mhz: frequency_mhz(),
            ..Round::default()
        };
        round.disturbed = judge(&round, end.thermal_events > self.thermal_events);
        round
    }
}

/// Returns the reasons to count a round as disturbed. I/O pressure is no reason: the samples' own syncs cause it.
fn judge(round: &Round, throttled_by_heat: bool) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut check = |cause: &str, share: f64, limit: f64| {
        if round.took_s >= SHORTEST_JUDGED_S && share > limit {
            reasons.push(format!("{cause} {:.0} %", share * 100.0));
        }
    };
    check("steal", round.steal, MAX_STEAL);
    check("other processes' CPU", round.foreign_cpu, MAX_FOREIGN_CPU);
    check("waiting for a CPU", round.pressure_cpu.unwrap_or(0.0), MAX_PRESSURE_CPU);
    check("waiting for memory", round.pressure_memory.unwrap_or(0.0), MAX_PRESSURE_MEMORY);
    if round.throttled_us > 0 {
        reasons.push(format!("throttled by a cgroup limit for {} ms", round.throttled_us / 1000));
    }
    if throttled_by_heat {
        reasons.push("throttled by heat".into());
    }
    reasons
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns busy, stolen and all ticks of the line `cpu` of /proc/stat: user nice system idle iowait irq softirq steal.
fn cpu_ticks(stat: &str) -> (u64, u64, u64) {
    let line = stat.lines().find(|line| line.starts_with("cpu ")).unwrap_or("");
    let ticks: Vec<u64> = line.split_whitespace().skip(1).take(8).filter_map(|t| t.parse().ok()).collect();
    let at = |i: usize| ticks.get(i).copied().unwrap_or(0);
    (at(0) + at(1) + at(2) + at(5) + at(6), at(7), ticks.iter().sum())
}

/// Returns the sum of utime, stime, cutime and cstime of /proc/PID/stat. The command name before them may
/// contain spaces.
fn own_ticks(stat: &str) -> u64 {
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
    fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// Returns `total=` of the line `some` of /proc/pressure/*, in microseconds.
fn pressure_us(text: &str) -> Option<u64> {
    text.lines().find(|line| line.starts_with("some"))?.rsplit("total=").next()?.trim().parse().ok()
}

/// Returns whether tasks waited for a processor in at most [`MAX_PRESSURE_CPU`] of the last ten seconds; false if the kernel
/// does not count that time (CONFIG_PSI).
pub(crate) fn is_quiet_now() -> bool {
    recent_pressure(&read("/proc/pressure/cpu")).is_some_and(|share| share <= MAX_PRESSURE_CPU)
}

/// Returns `avg10=` of the line `some` of /proc/pressure/*, as a share of the time.
fn recent_pressure(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("some"))?;
    let percent: f64 = line.split_once("avg10=")?.1.split(' ').next()?.parse().ok()?;
    Some(percent / 100.0)
}

/// Returns the microseconds for which the cgroup's CPU limit throttled this process, from cpu.stat of version 2 or 1.
fn throttled_us() -> u64 {
    let cgroups = read("/proc/self/cgroup");
    let candidates = cgroups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        match controllers {
            "" => Some(PathBuf::from("/sys/fs/cgroup").join(path)),
            names if names.split(',').any(|name| name == "cpu") => {
                Some(PathBuf::from("/sys/fs/cgroup").join(names).join(path))
            }
            _ => None,
        }
    });
    let of_stat = |text: String| {
        text.lines().find_map(|line| match line.split_once(' ')? {
            ("throttled_usec", us) => us.parse::<u64>().ok(),
            ("throttled_time", ns) => ns.parse::<u64>().ok().map(|ns| ns / 1000),
            _ => None,
        })
    };
    candidates
        .filter_map(|folder| of_stat(fs::read_to_string(folder.join("cpu.stat")).ok()?))
        .max()
        .unwrap_or(0)
}

fn cpu_files(name: &str) -> impl Iterator<Item = u64> {
    (0..)
        .map_while(move |cpu: u32| {
            let folder = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}"));
            folder.exists().then(|| fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok())
        })
        .flatten()
}

fn thermal_events() -> u64 {
    cpu_files("thermal_throttle/core_throttle_count").sum()
}

/// Returns the mean of the processors' current frequencies; `None` without cpufreq.
fn frequency_mhz() -> Option<f64> {
    let khz: Vec<u64> = cpu_files("cpufreq/scaling_cur_freq").collect();
    (!khz.is_empty()).then(|| khz.iter().sum::<u64>() as f64 / khz.len() as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_proc() {
        assert_eq!(cpu_ticks("cpu  10 1 5 100 7 2 3 4 0 0\ncpu0 1"), (21, 4, 132));
        assert_eq!(own_ticks("1 (a) b) S 1 1 1 0 -1 4194560 1 2 3 4 10 20 30 40 20 0"), 100);
        assert_eq!(
            pressure_us("some avg10=0.05 avg60=1.02 avg300=0.47 total=1942131\nfull avg10=0.00 total=0"),
            Some(1942131)
        );
        assert_eq!(pressure_us(""), None);
        assert_eq!(recent_pressure("some avg10=25.50 avg60=1.02 avg300=0.47 total=1942131"), Some(0.255));
        assert_eq!(recent_pressure(""), None);
    }

    #[test]
    fn the_load_of_the_samples_does_not_count_as_a_disturbance() {
        let calm = Round { took_s: 2.0, pressure_io: Some(0.9), ..Round::default() };
        assert_eq!(judge(&calm, false), Vec::<String>::new());
        let stolen = Round { took_s: 2.0, steal: 0.05, foreign_cpu: 0.3, ..Round::default() };
        assert_eq!(judge(&stolen, false), ["steal 5 %", "other processes' CPU 30 %"]);
        let short = Round { took_s: 0.1, steal: 0.5, ..Round::default() };
        assert_eq!(judge(&short, true), ["throttled by heat"]);
    }

    #[test]
    fn this_machine_has_counters() {
        let counters = MachineCounters::now();
        assert!(counters.all > 0 && counters.busy <= counters.all);
        assert_eq!(counters.round_until(&counters, 3).samples, 3);
    }
}
