//! Other tools on the same program: figures for comparison, without targets.

use std::path::Path;
use std::process::{Command, Stdio};

use weir_sys::command::find;

use crate::bench_dir::BenchDir;
use crate::figure::{information, millis, paired, ratio, summary};
use crate::targets::Target;
use crate::tr2u::alone;
use crate::traced::weir;
use crate::{BoxError, process};

const HISTOGRAMS: &str = "\
    tracepoint:syscalls:sys_exit_read /pid == cpid/ { @read = hist(args->ret); } \
    tracepoint:syscalls:sys_exit_write /pid == cpid/ { @write = hist(args->ret); }";

/// A tool and its command for a program.
struct Tool {
    name: &'static str,
    program: &'static str,
    /// Bytes of the input: enough that the tool's start is small in comparison.
    bytes: usize,
    rounds: usize,
    command: fn(&BenchDir, &Path) -> Command,
}

const TOOLS: [Tool; 5] = [
    Tool { name: "strace -c", program: "strace", bytes: 30_000, rounds: 3, command: strace },
    Tool { name: "perf trace -s", program: "perf", bytes: 30_000, rounds: 3, command: perf },
    Tool {
        name: "bpftrace, two histograms",
        program: "bpftrace",
        bytes: 1_000_000,
        rounds: 4,
        command: bpftrace,
    },
    Tool { name: "weir trace --exact", program: "weir", bytes: 500_000, rounds: 5, command: exact },
    Tool { name: "weir trace", program: "weir", bytes: 500_000, rounds: 5, command: default },
];

fn strace(bench: &BenchDir, program: &Path) -> Command {
    let mut command = Command::new("strace");
    command.args(["-c", "-o"]).arg(bench.path("strace")).arg(program);
    command
}

fn perf(bench: &BenchDir, program: &Path) -> Command {
    let mut command = Command::new("perf");
    command.args(["trace", "-s", "-o"]).arg(bench.path("perf")).arg(program);
    command
}

fn bpftrace(bench: &BenchDir, program: &Path) -> Command {
    let mut command = Command::new("bpftrace");
    command.args(["-q", "-o"]).arg(bench.path("bpftrace")).args(["-e", HISTOGRAMS, "-c"]).arg(program);
    command
}

fn exact(bench: &BenchDir, program: &Path) -> Command {
    let mut command = weir(bench, &["--exact", "--"]);
    command.arg(program);
    command
}

fn default(bench: &BenchDir, program: &Path) -> Command {
    let mut command = weir(bench, &["--"]);
    command.arg(program);
    command
}

/// Measures tr2u alone, under the tool, and under the tool with no input, which gives the tool's start and end.
fn row(bench: &BenchDir, tool: &Tool) -> Result<Target, BoxError> {
    let bytes = bench.pick(tool.bytes, tool.bytes / 10);
    let name = format!("{}, tr2u, {bytes} bytes", tool.name);
    let (input, output) = (bench.input(bytes)?, bench.path("out"));
    let under = |input: &Path| -> Result<f64, BoxError> {
        let mut command = (tool.command)(bench, &bench.path("tr2u"));
        process::redirect(&mut command, input, &output)?;
        // Discards bpftrace's warning about RLIMIT_MEMLOCK.
        process::seconds(command.stderr(Stdio::null()))
    };
    let (mut pairs, mut starts) = (Vec::new(), Vec::new());
    for _ in 0..bench.pick(tool.rounds, 2) {
        let bare = alone(bench, "tr2u", &input, &output)?;
        let start = under(Path::new("/dev/null"))?;
        pairs.push((under(&input)? - start, bare));
        starts.push(start);
    }
    let measured = format!(
        "{} times bare; start and end {}",
        ratio(&paired(pairs.iter().copied())?),
        millis(&summary(&starts)?)
    );
    Ok(information(name, measured))
}

pub fn rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    for tool in &TOOLS {
        rows.push(if tool.program == "weir" {
            row(bench, tool)?
        } else if find(tool.program).is_some() {
            // An installed tool that fails, such as perf without privilege, does not fail the benchmark.
            let failed = |error: BoxError| information(tool.name.into(), format!("failed: {error}"));
            row(bench, tool).unwrap_or_else(failed)
        } else {
            information(tool.name.into(), "not installed".into())
        });
    }
    Ok(())
}
