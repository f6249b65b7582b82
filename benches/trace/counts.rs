//! Whether `--exact` counts what was called, and what strace counts.

use std::path::Path;
use std::process::Command;

use weir_sys::command::find;

use crate::bed::Bed;
use crate::targets::Target;
use crate::traced::run_on;
use crate::{Failed, process};

const BYTES: usize = 5_000_000;
/// strace stops the program at every call.
const FEWER_BYTES: usize = 50_000;

/// Calls of read(2) and write(2) on the input and the output, as `strace -c` counts them.
fn strace(bed: &Bed, input: &Path, output: &Path) -> Result<(u64, u64), Failed> {
    let table = bed.path("strace");
    let mut command = Command::new("strace");
    command.args(["-c", "-o"]).arg(&table);
    // Only these two files: what the loader reads is left out.
    command.arg("-P").arg(input).arg("-P").arg(output).arg(bed.path("tr2u"));
    process::redirect(&mut command, input, output)?;
    process::seconds(&mut command)?;
    let text = std::fs::read_to_string(table)?;
    // % time, seconds, usecs/call, calls, errors (may be empty), syscall
    let calls = |name: &str| {
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let line = lines.into_iter().find(|words| words.last() == Some(&name));
        line.and_then(|words| words.get(3)?.parse().ok())
            .ok_or_else(|| format!("strace said no {name}:\n{text}"))
    };
    Ok((calls("read")?, calls("write")?))
}

/// The same, as weir counts them, and whether it is sure.
fn exact(bed: &Bed, input: &Path, output: &Path) -> Result<((u64, u64), bool), Failed> {
    let traced = run_on(bed, &["--exact"], "tr2u", input, output)?;
    Ok(((traced.calls(0, "in"), traced.calls(1, "out")), traced.json["exact"] == true))
}

fn row(bytes: usize, (ours, sure): ((u64, u64), bool), strace: Option<(u64, u64)>) -> Target {
    // The last read meets the end of the file.
    let right = (bytes as u64 + 1, bytes as u64);
    let beside = strace.map_or(String::new(), |(reads, writes)| format!("; strace -c {reads} and {writes}"));
    Target {
        name: format!("calls of tr2u, {bytes} bytes, --exact"),
        target: format!("{} and {}", right.0, right.1),
        measured: format!(
            "{} and {}{}{beside}",
            ours.0,
            ours.1,
            if sure { "" } else { ", said not to be exact" }
        ),
        reached: sure && ours == right && strace.is_none_or(|theirs| theirs == ours),
    }
}

pub fn rows(bed: &Bed, rows: &mut Vec<Target>) -> Result<(), Failed> {
    let output = bed.path("out");
    let (all, fewer) = (bed.pick(BYTES, 300_000), bed.pick(FEWER_BYTES, 5_000));
    rows.push(row(all, exact(bed, &bed.input(all)?, &output)?, None));
    let input = bed.input(fewer)?;
    let beside = if find("strace").is_some() { Some(strace(bed, &input, &output)?) } else { None };
    let mut compared = row(fewer, exact(bed, &input, &output)?, beside);
    if beside.is_none() {
        compared.measured += "; strace: not here";
        compared.reached = false;
    }
    rows.push(compared);
    Ok(())
}
