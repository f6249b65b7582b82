//! Short lines by printf to a pipe, as fast as they come.

use std::io::Read;
use std::process::Stdio;
use std::time::Instant;

use crate::Failed;
use crate::bed::Bed;
use crate::figure::{paired, ratio};
use crate::rounds::{pairs, rounds};
use crate::targets::Target;

const LINES: usize = 10_000_000;
const MOST_OF_FULL: f64 = 1.05;
const LEAST_OF_LINES: f64 = 5.0;

pub fn rows(bed: &Bed, rows: &mut Vec<Target>) -> Result<(), Failed> {
    let lines = bed.pick(LINES, LINES / 20);
    let runs = [&[][..], &["weir", "--max-delay", "100ms"], &["stdbuf", "-oL"]];
    // Of the small ratio more rounds; of the large one, whose other side takes ten times as long, few.
    let timed =
        |number, runs: &[&[&str]]| rounds(number, runs.len(), |which| through_pipe(bed, runs[which], lines));
    let full = paired(pairs(&timed(bed.pick(21, 3), &runs[..2])?, 1, 0))?;
    let by_lines = paired(pairs(&timed(bed.pick(3, 3), &runs[1..])?, 1, 0))?;
    rows.push(Target {
        name: format!("{lines} lines to a pipe, --max-delay 100ms"),
        target: format!("at most {MOST_OF_FULL} times full buffering"),
        measured: ratio(&full),
        reached: full.value <= MOST_OF_FULL,
    });
    rows.push(Target {
        name: "the same beside stdbuf -oL".into(),
        target: format!("at least {LEAST_OF_LINES} times faster"),
        measured: ratio(&by_lines),
        reached: by_lines.value >= LEAST_OF_LINES,
    });
    Ok(())
}

/// Seconds until the program has ended, its output read here.
fn through_pipe(bed: &Bed, under: &[&str], lines: usize) -> Result<f64, Failed> {
    let mut command = bed.command(under, "lines");
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
    let right = lines * b"0000000 a line\n".len();
    if !status.success() || bytes != right {
        return Err(format!("{under:?}: {status}, {bytes} bytes of {right}").into());
    }
    Ok(seconds)
}
