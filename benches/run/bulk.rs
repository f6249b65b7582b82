//! Many short lines by printf to a pipe, at full speed.

use std::io::Read;
use std::process::Stdio;
use std::time::Instant;

use crate::BoxError;
use crate::bench_dir::BenchDir;
use crate::figure::{paired, ratio};
use crate::rounds::{pairs, rounds};
use crate::targets::Target;

const LINES: usize = 10_000_000;
const MAX_RATIO_TO_FULL: f64 = 1.05;
const MIN_RATIO_TO_LINES: f64 = 5.0;

pub fn rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let lines = bench.pick(LINES, LINES / 20);
    let runs = [&[][..], &["weir", "--max-delay", "100ms"], &["stdbuf", "-oL"]];
    // The small ratio needs many rounds; the large one, whose rival takes ten times as long, few.
    let timed = |number, runs: &[&[&str]]| {
        rounds(number, runs.len(), |which| through_pipe(bench, runs[which], lines))
    };
    let full = paired(pairs(&timed(bench.pick(21, 3), &runs[..2])?, 1, 0))?;
    let by_lines = paired(pairs(&timed(bench.pick(3, 3), &runs[1..])?, 1, 0))?;
    rows.push(Target {
        name: format!("{lines} lines to a pipe, --max-delay 100ms"),
        target: format!("at most {MAX_RATIO_TO_FULL} times full buffering"),
        measured: ratio(&full),
        reached: full.value <= MAX_RATIO_TO_FULL,
    });
    rows.push(Target {
        name: "the same beside stdbuf -oL".into(),
        target: format!("at least {MIN_RATIO_TO_LINES} times faster"),
        measured: ratio(&by_lines),
        reached: by_lines.value >= MIN_RATIO_TO_LINES,
    });
    Ok(())
}

/// Runs the program with its output in a pipe, reads the pipe, and returns the seconds until the program has ended.
fn through_pipe(bench: &BenchDir, under: &[&str], lines: usize) -> Result<f64, BoxError> {
    let mut command = bench.command(under, "lines");
    let started = Instant::now();
    let mut child = command.arg(lines.to_string()).stdout(Stdio::piped()).spawn()?;
    let mut pipe = child.stdout.take().ok_or("no pipe")?;
    let (mut buffer, mut bytes) = (vec![0; 1 << 16], 0);
    loop {
        match pipe.read(&mut buffer)? {
            0 => break,
            read => bytes += read,
        }
    }
    let status = child.wait()?;
    let seconds = started.elapsed().as_secs_f64();
    let expected = lines * b"0000000 a line\n".len();
    if !status.success() || bytes != expected {
        return Err(format!("{under:?}: {status}, {bytes} bytes of {expected}").into());
    }
    Ok(seconds)
}
