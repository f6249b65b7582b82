//! Lines of 100 bytes from a pipe to a file.

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::BoxError;
use crate::bench_dir::BenchDir;
use crate::collector::has;
use crate::figure::{paired, ratio};
use crate::rounds::{pairs, rounds};
use crate::targets::Target;
use crate::targets::built::weir;

const BYTES: usize = 512 << 20;

pub fn rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let line = [&[b'x'; 99][..], b"\n"].concat();
    let bytes = bench.pick(BYTES, BYTES / 16) / line.len() * line.len();
    std::fs::write(bench.path("lines"), line.repeat(bytes / line.len()))?;
    let measure =
        |number, jobs: &[&str]| rounds(number, jobs.len(), |which| collect(bench, jobs[which], bytes));
    let cat = paired(pairs(&measure(bench.pick(15, 3), &["weir log -q -o out", "cat > out"])?, 1, 0))?;
    rows.push(Target {
        name: format!("{} lines from a pipe: throughput beside cat > file", bytes / line.len()),
        target: "at least 0.9".into(),
        measured: ratio(&cat),
        reached: cat.value >= 0.9,
    });
    for (program, job, least) in
        [("s6-log", "s6-log n2 s268435455 ./s6", 5.0), ("multilog", "multilog s16777215 n50 ./multi", 5.0)]
    {
        let name = format!("the same beside {program}");
        if !has(program) {
            rows.push(Target::missing(&name, program));
            continue;
        }
        let beside = paired(pairs(&measure(bench.pick(3, 3), &["weir log -q -o out", job])?, 1, 0))?;
        rows.push(Target {
            name,
            target: format!("at least {least}"),
            measured: ratio(&beside),
            reached: beside.value >= least,
        });
    }
    Ok(())
}

/// Runs a logger at the end of a pipe. Returns the seconds until it has ended.
fn collect(bench: &BenchDir, job: &str, bytes: usize) -> Result<f64, BoxError> {
    for name in ["out", "s6", "multi"] {
        let path = bench.path(name);
        let _ = std::fs::remove_file(&path);
        let _ = std::fs::remove_dir_all(&path);
    }
    let directory = bench.path("lines").parent().ok_or("a directory")?.to_path_buf();
    let job = job.replacen("weir ", &format!("{} ", weir()), 1);
    let started = Instant::now();
    let mut writer = Command::new("cat").arg(bench.path("lines")).stdout(Stdio::piped()).spawn()?;
    let pipe = writer.stdout.take().ok_or("no pipe")?;
    let status = Command::new("sh")
        .args(["-c", &format!("exec {job}")])
        .current_dir(&directory)
        .stdin(pipe)
        .status()?;
    let seconds = started.elapsed().as_secs_f64();
    writer.wait()?;
    if !status.success() {
        return Err(format!("{job}: {status}").into());
    }
    if let Ok(out) = std::fs::metadata(bench.path("out"))
        && out.len() != bytes as u64
    {
        return Err(format!("{job}: {} bytes of {bytes}", out.len()).into());
    }
    Ok(seconds)
}
