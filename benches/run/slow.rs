//! Programs that write ten lines a second, each with its time: the delay until each arrives.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread;

use rustix::time::{ClockId, clock_gettime};

use crate::BoxError;
use crate::bench_dir::BenchDir;
use crate::targets::Target;

/// Number of concurrent programs: together they write a thousand lines in 13 s.
const PROGRAMS: usize = 8;
const LINES: usize = 130;
const MAX_MS: f64 = 120.0;
const SHARE: f64 = 0.999;

pub fn rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let lines = bench.pick(LINES, 20);
    let results = thread::scope(|scope| {
        let threads: Vec<_> = (0..PROGRAMS)
            .map(|_| scope.spawn(|| delays(bench, lines).map_err(|error| error.to_string())))
            .collect();
        threads.into_iter().map(|one| one.join().map_err(|_| "a reader failed")?).collect::<Vec<_>>()
    });
    let mut all = Vec::new();
    for one in results {
        all.extend(one?);
    }
    all.sort_by(f64::total_cmp);
    let within = all.iter().filter(|ms| **ms <= MAX_MS).count() as f64 / all.len() as f64;
    let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize];
    rows.push(Target {
        name: format!("{} lines, ten a second, --max-delay 100ms", all.len()),
        target: format!("{:.1} % within {MAX_MS:.0} ms", SHARE * 100.0),
        measured: format!(
            "{:.2} %; median {:.0} ms, 99.9 % {:.0} ms, worst {:.0} ms",
            within * 100.0,
            at(0.5),
            at(SHARE),
            at(1.0)
        ),
        reached: within >= SHARE,
    });
    Ok(())
}

/// Returns the milliseconds from the program's printf to the arrival of each line.
fn delays(bench: &BenchDir, lines: usize) -> Result<Vec<f64>, BoxError> {
    let mut command = bench.command(&["weir", "--max-delay", "100ms"], "slow");
    let mut child = command.arg(lines.to_string()).stdout(Stdio::piped()).spawn()?;
    let mut delays = Vec::new();
    for line in BufReader::new(child.stdout.take().ok_or("no pipe")?).lines() {
        let line = line?;
        let now = clock_gettime(ClockId::Monotonic);
        let now_ns = now.tv_sec as f64 * 1e9 + now.tv_nsec as f64;
        delays.push((now_ns - line.parse::<f64>()?) / 1e6);
    }
    let status = child.wait()?;
    if !status.success() || delays.len() != lines {
        return Err(format!("{status}, {} lines of {lines}", delays.len()).into());
    }
    Ok(delays)
}
