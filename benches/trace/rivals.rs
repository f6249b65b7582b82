//! The other tools on the same program: figures to compare with, of which nothing is asked.

use std::path::Path;
use std::process::{Command, Stdio};

use weir_sys::command::find;

use crate::bed::Bed;
use crate::figure::{information, millis, paired, ratio, summary};
use crate::targets::Target;
use crate::tr2u::alone;
use crate::traced::weir;
use crate::{Failed, process};

const HISTOGRAMS: &str = "\
    tracepoint:syscalls:sys_exit_read /pid == cpid/ { @read = hist(args->ret); } \
    tracepoint:syscalls:sys_exit_write /pid == cpid/ { @write = hist(args->ret); }";

/// One tool: its name, on how many bytes it is tried (so many that its own start is little beside them), how
/// often, and its command for a program.
struct Tool {
    name: &'static str,
    program: &'static str,
    bytes: usize,
    rounds: usize,
    command: fn(&Bed, &Path) -> Command,
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

fn strace(bed: &Bed, program: &Path) -> Command {
    let mut command = Command::new("strace");
    command.args(["-c", "-o"]).arg(bed.path("strace")).arg(program);
    command
}

fn perf(bed: &Bed, program: &Path) -> Command {
    let mut command = Command::new("perf");
    command.args(["trace", "-s", "-o"]).arg(bed.path("perf")).arg(program);
    command
}

fn bpftrace(bed: &Bed, program: &Path) -> Command {
    let mut command = Command::new("bpftrace");
    command.args(["-q", "-o"]).arg(bed.path("bpftrace")).args(["-e", HISTOGRAMS, "-c"]).arg(program);
    command
}

fn exact(bed: &Bed, program: &Path) -> Command {
    let mut command = weir(bed, &["--exact", "--"]);
    command.arg(program);
    command
}

fn default(bed: &Bed, program: &Path) -> Command {
    let mut command = weir(bed, &["--"]);
    command.arg(program);
    command
}

/// Rounds of tr2u alone, under the tool, and under the tool with no input: its start and its end.
fn row(bed: &Bed, tool: &Tool) -> Result<Target, Failed> {
    let bytes = bed.pick(tool.bytes, tool.bytes / 10);
    let name = format!("{}, tr2u, {bytes} bytes", tool.name);
    let (input, output) = (bed.input(bytes)?, bed.path("out"));
    let under = |input: &Path| -> Result<f64, Failed> {
        let mut command = (tool.command)(bed, &bed.path("tr2u"));
        process::redirect(&mut command, input, &output)?;
        // What bpftrace says of RLIMIT_MEMLOCK has no place between the rows.
        process::seconds(command.stderr(Stdio::null()))
    };
    let (mut pairs, mut starts) = (Vec::new(), Vec::new());
    for _ in 0..bed.pick(tool.rounds, 2) {
        let bare = alone(bed, "tr2u", &input, &output)?;
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

pub fn rows(bed: &Bed, rows: &mut Vec<Target>) -> Result<(), Failed> {
    for tool in &TOOLS {
        rows.push(if tool.program == "weir" {
            row(bed, tool)?
        } else if find(tool.program).is_some() {
            // One that is here but fails (perf without its rights, say) must not take the report with it.
            let failed = |error: Failed| information(tool.name.into(), format!("failed: {error}"));
            row(bed, tool).unwrap_or_else(failed)
        } else {
            information(tool.name.into(), "not here".into())
        });
    }
    Ok(())
}
