//! Compares the counts of `--exact` with the calls of the program and with those that strace counts.

use std::path::Path;
use std::process::Command;

use weir_sys::command::find;

use crate::bench_dir::BenchDir;
use crate::targets::Target;
use crate::traced::run_on;
use crate::{BoxError, process};

const BYTES: usize = 5_000_000;
/// Fewer bytes for strace, which stops the program at every call.
const FEWER_BYTES: usize = 50_000;

/// Returns the calls of read(2) and write(2) on the input and the output that `strace -c` counts.
fn strace(bench: &BenchDir, input: &Path, output: &Path) -> Result<(u64, u64), BoxError> {
    let table = bench.path("strace");
    let mut command = Command::new("strace");
    command.args(["-c", "-o"]).arg(&table);
    // Only these two files, without the reads of the dynamic loader.
    command.arg("-P").arg(input).arg("-P").arg(output).arg(bench.path("tr2u"));
    process::redirect(&mut command, input, output)?;
    process::seconds(&mut command)?;
    let text = std::fs::read_to_string(table)?;
    // % time, seconds, usecs/call, calls, errors (may be empty), syscall
    let calls = |name: &str| {
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let line = lines.into_iter().find(|words| words.last() == Some(&name));
        line.and_then(|words| words.get(3)?.parse().ok())
            .ok_or_else(|| format!("strace's table has no {name}:\n{text}"))
    };
    Ok((calls("read")?, calls("write")?))
}

/// Returns the same counts by weir, and whether weir calls them exact.
fn exact(bench: &BenchDir, input: &Path, output: &Path) -> Result<((u64, u64), bool), BoxError> {
    let traced = run_on(bench, &["--exact"], "tr2u", input, output)?;
    Ok(((traced.calls(0, "in"), traced.calls(1, "out")), traced.json["exact"] == true))
}

fn row(bytes: usize, (ours, is_exact): ((u64, u64), bool), strace: Option<(u64, u64)>) -> Target {
    // The last read returns 0 at the end of the file.
    let expected = (bytes as u64 + 1, bytes as u64);
    let remark = strace.map_or(String::new(), |(reads, writes)| format!("; strace -c {reads} and {writes}"));
    Target {
        name: format!("calls of tr2u, {bytes} bytes, --exact"),
        target: format!("{} and {}", expected.0, expected.1),
        measured: format!(
            "{} and {}{}{remark}",
            ours.0,
            ours.1,
            if is_exact { "" } else { ", not marked as exact" }
        ),
        reached: is_exact && ours == expected && strace.is_none_or(|theirs| theirs == ours),
    }
}

pub fn rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let output = bench.path("out");
    let (all, fewer) = (bench.pick(BYTES, 300_000), bench.pick(FEWER_BYTES, 5_000));
    rows.push(row(all, exact(bench, &bench.input(all)?, &output)?, None));
    let input = bench.input(fewer)?;
    let by_strace = if find("strace").is_some() { Some(strace(bench, &input, &output)?) } else { None };
    let mut compared = row(fewer, exact(bench, &input, &output)?, by_strace);
    if by_strace.is_none() {
        compared.measured += "; strace is not installed";
        compared.reached = false;
    }
    rows.push(compared);
    Ok(())
}
