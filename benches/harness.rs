//! `make bench-harness`: the cost and the accuracy of `weir bench`, compared with a plain C program and fio(1). The
//! compared runs are interleaved; figures are ratios with their spread.

mod targets;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde_json::Value;
use targets::{Target, built};
use weir_bench::axes::Workload;
use weir_bench::job::{Job, Measured, SampleOutcome};
use weir_bench::sample::{self, SampleEnd};
use weir_model::{Ratio, Size};

const BYTES: u64 = 100_000_000;
const ROUNDS: usize = 30;

/// The copy loop of a textbook.
const PLAIN_C: &str = r"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    size_t size = strtoul(argv[3], 0, 10), left = strtoul(argv[4], 0, 10);
    char *buffer = malloc(size);
    int in = open(argv[1], O_RDONLY), out = open(argv[2], O_WRONLY | O_CREAT | O_EXCL, 0600);
    ssize_t n;
    if (argc != 5 || !buffer || in < 0 || out < 0)
        return 1;
    while (left > 0 && (n = read(in, buffer, size < left ? size : left)) > 0) {
        for (ssize_t done = 0, k; done < n; done += k)
            if ((k = write(out, buffer + done, n - done)) < 0)
                return 1;
        left -= n;
    }
    return close(out) != 0;
}
";

type BoxError = Box<dyn std::error::Error>;

fn main() -> Result<(), BoxError> {
    // A sample is a child process that runs this program again, as in weir itself.
    if std::env::args().nth(1).is_some_and(|word| word == sample::CHILD_ARGUMENT) {
        std::process::exit(sample::child_main());
    }
    let dir = tempfile::Builder::new().prefix("weir-bench-").tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let mut rows = Vec::new();
    overhead(dir.path(), &mut rows)?;
    fio(dir.path(), &mut rows)?;
    default_run(dir.path(), &mut rows)?;
    tables(dir.path(), &mut rows)?;
    targets::finish("harness", &rows)?;
    Ok(())
}

fn say(what: &str) {
    eprintln!("bench-harness: {what}");
}

fn job(method: &str, workload: Workload, dir: &Path, record: u64, bytes: u64) -> Job {
    let path = |name: &str| Some(dir.join(name).into_os_string());
    let in_path = if workload.has_input() { path("in") } else { None };
    Job { in_path, out_path: path("out"), ..Job::plain(method, workload, bytes, record) }
}

fn measure(job: &Job) -> Result<Measured, BoxError> {
    let ended = sample::run(job, "sample", &AtomicBool::new(false))?;
    let _ = std::fs::remove_file(job.out_path.as_deref().unwrap_or_default());
    match ended {
        SampleEnd::Finished(SampleOutcome::Ok(measured), _) => Ok(*measured),
        SampleEnd::Finished(other, _) => Err(format!("{other:?}").into()),
        SampleEnd::Stopped => Err("stopped".into()),
    }
}

/// Returns the wall-clock and CPU seconds of a whole process. Reads the CPU time of the zombie, before wait(2) reaps it.
fn process_times(command: &mut Command, out: &Path) -> Result<(f64, f64), BoxError> {
    let started = Instant::now();
    let mut child = command.spawn()?;
    let pid = Pid::from_child(&child);
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let wall = started.elapsed().as_secs_f64();
    let stat = std::fs::read_to_string(format!("/proc/{}/schedstat", child.id()))?;
    let cpu = stat.split_whitespace().next().unwrap_or("0").parse::<f64>()? / 1e9;
    let status = child.wait()?;
    std::fs::remove_file(out)?;
    if status.success() { Ok((wall, cpu)) } else { Err(format!("{command:?}: {status}").into()) }
}

/// Formats a ratio as a difference: `+0.4 % [-0.3, +1.1]`.
fn percent(ratio: &Ratio) -> String {
    let off = |value: f64| (value - 1.0) * 100.0;
    format!("{:+.1} % [{:+.1}, {:+.1}]", off(ratio.value), off(ratio.ci95[0]), off(ratio.ci95[1]))
}

/// Compares the `syscall` row with the plain program, at sizes with which the start of a process does not matter.
fn overhead(dir: &Path, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    say("the loop against a plain C program");
    let (source, program) = (dir.join("plain.c"), dir.join("plain"));
    std::fs::write(&source, PLAIN_C)?;
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let built = Command::new(compiler).args(["-O2", "-o"]).arg(&program).arg(&source).status()?;
    if !built.success() {
        return Err(format!("cc: {built}").into());
    }
    std::fs::write(dir.join("in"), vec![b'x'; BYTES as usize])?;
    for (record, bytes) in [(1, 300_000), (64, 12_000_000), (4096, BYTES)] {
        let job = job("syscall", Workload::Copy, dir, record, bytes);
        let (mut wall, mut cpu) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let ours = || -> Result<(f64, f64), BoxError> {
                let row = measure(&job)?;
                Ok((row.elapsed_ns as f64 / 1e9, row.cpu_ns as f64 / 1e9))
            };
            let plain = || -> Result<(f64, f64), BoxError> {
                let mut command = Command::new(&program);
                command
                    .arg(dir.join("in"))
                    .arg(dir.join("out"))
                    .args([record.to_string(), bytes.to_string()]);
                process_times(&mut command, &dir.join("out"))
            };
            // A B, B A, A B …: each runs first in every other round.
            let (a, b) = if round % 2 == 0 {
                let a = ours()?;
                (a, plain()?)
            } else {
                let b = plain()?;
                (ours()?, b)
            };
            wall.push((a.0, b.0));
            cpu.push((a.1, b.1));
        }
        let (wall, cpu) = (Ratio::paired(wall).ok_or("no pair")?, Ratio::paired(cpu).ok_or("no pair")?);
        rows.push(Target {
            name: format!("syscall row against plain C, copy at {}", Size(record)),
            target: "CPU within 3 %".into(),
            measured: format!("CPU {}, wall {}", percent(&cpu), percent(&wall)),
            reached: (cpu.value - 1.0).abs() <= 0.03,
        });
    }
    Ok(())
}

/// Runs fio(1) once and returns its mean nanoseconds per pwrite, measured with fio's own clock.
fn fio_call_ns(dir: &Path, record: u64) -> Result<f64, BoxError> {
    let output = Command::new("fio")
        .args(["--name=weir", "--ioengine=psync", "--rw=write", "--fallocate=none", "--create_on_open=1"])
        .args(["--end_fsync=0", "--group_reporting=1", "--output-format=json", "--filename=fio.out"])
        .current_dir(dir)
        .arg(format!("--bs={record}"))
        .arg(format!("--size={BYTES}"))
        .output()?;
    if !output.status.success() {
        let messages =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        return Err(format!("fio: {}: {messages}", output.status).into());
    }
    std::fs::remove_file(dir.join("fio.out"))?;
    let document: Value = serde_json::from_slice(&output.stdout)?;
    document["jobs"][0]["write"]["clat_ns"]["mean"].as_f64().ok_or_else(|| "fio's JSON has no clat_ns".into())
}

/// Returns the relative difference that 95 % of the pairs of equal runs do not exceed. fio's figure is of a single run, so
/// its noise is this, not the narrower interval of a median.
fn run_to_run(pairs: &[(f64, f64)]) -> f64 {
    let mut apart: Vec<f64> = pairs.iter().map(|(a, b)| (a / b).ln().abs().exp() - 1.0).collect();
    apart.sort_by(f64::total_cmp);
    apart.get((apart.len() * 95 / 100).min(apart.len().saturating_sub(1))).copied().unwrap_or(0.0)
}

/// Compares the time per write: ours from the time of the loop, fio's from its clock around each call. Each runs twice per
/// round, which gives its noise.
fn fio(dir: &Path, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    say("the figures against fio's");
    for record in [4096, 65536] {
        let ours = || -> Result<f64, BoxError> {
            let row = measure(&job("pread-pwrite", Workload::Write, dir, record, BYTES))?;
            Ok(row.transfer_ns as f64 / row.records as f64 - row.empty_loop_ns)
        };
        let (mut pairs, mut our_noise, mut fio_noise) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS / 2 {
            let (a, b, c, d) = (ours()?, fio_call_ns(dir, record)?, ours()?, fio_call_ns(dir, record)?);
            pairs.extend([(a, b), (c, d)]);
            our_noise.push((a, c));
            fio_noise.push((b, d));
        }
        let ratio = Ratio::paired(pairs.iter().copied()).ok_or("no pair")?;
        let (our_floor, fio_floor) = (run_to_run(&our_noise), run_to_run(&fio_noise));
        let floors = our_floor + fio_floor;
        let mean = |pick: fn(&(f64, f64)) -> f64| pairs.iter().map(pick).sum::<f64>() / pairs.len() as f64;
        rows.push(Target {
            name: format!("a write of {} against fio's psync", Size(record)),
            target: format!("within run-to-run noise, {:.1} + {:.1} %", our_floor * 100.0, fio_floor * 100.0),
            measured: format!(
                "{} ({:.0} ns and {:.0} ns a call)",
                percent(&ratio),
                mean(|p| p.0),
                mean(|p| p.1)
            ),
            reached: (ratio.value - 1.0).abs() <= floors,
        });
    }
    Ok(())
}

fn weir(dir: &Path, arguments: &[&str]) -> Result<(Value, f64), BoxError> {
    let file: PathBuf = dir.join("r.json");
    let started = Instant::now();
    let status = Command::new(built::weir())
        .arg("bench")
        .args(arguments)
        .args(["--quiet", "--json"])
        .arg(&file)
        .current_dir(dir)
        .status()?;
    let seconds = started.elapsed().as_secs_f64();
    if !status.success() {
        return Err(format!("weir bench {arguments:?}: {status}").into());
    }
    Ok((serde_json::from_str(&std::fs::read_to_string(file)?)?, seconds))
}

fn default_run(dir: &Path, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    say("the default run: about a minute");
    let (document, seconds) = weir(dir, &["copy"])?;
    rows.push(Target {
        name: "default run, wall clock".into(),
        target: "at most 75 s".into(),
        measured: format!("{seconds:.1} s"),
        reached: seconds <= 75.0,
    });
    let noise = |which: &str| document["noise"][which].as_f64().unwrap_or(f64::INFINITY) * 100.0;
    rows.push(Target {
        name: "A/A noise of CPU time in it".into(),
        target: "at most 3 %".into(),
        measured: format!(
            "{:.1} % (wall {:.1} %), {} pairs",
            noise("cpu"),
            noise("wall"),
            document["noise"]["pairs"]
        ),
        reached: noise("cpu") <= 3.0,
    });
    Ok(())
}

fn tables(dir: &Path, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    say("the textbook's tables 13-1, 13-2 and 13-3: under three minutes");
    let (document, seconds) = weir(dir, &["--published", "tlpi-13", "--budget", "150s"])?;
    let all = document["rows"].as_array().map_or(0, Vec::len);
    let measured =
        document["rows"].as_array().into_iter().flatten().filter(|row| row["elapsed_s"].is_object()).count();
    rows.push(Target {
        name: "tables 13-1, 13-2, 13-3 in one run".into(),
        target: "36 rows, at most 180 s".into(),
        measured: format!("{measured} of {all} rows, {seconds:.0} s"),
        reached: measured == 36 && all == 36 && seconds <= 180.0,
    });
    Ok(())
}
