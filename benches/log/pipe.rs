//! Lines of 100 bytes from a pipe to a file.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::BoxError;
use crate::bench_dir::BenchDir;
use crate::collector::{Server, connect, has, wait_until};
use crate::figure::{paired, ratio};
use crate::rounds::{pairs, rounds};
use crate::targets::Target;
use crate::targets::built::weir;

/// Large enough that the start of a logger does not count.
const INPUT_BYTES: usize = 512 << 20;

/// Adds the rows of `weir log` beside each other logger. A ratio is the time of the other divided by that of weir, which is the
/// ratio of their throughputs.
pub fn add_rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let line = [&[b'x'; 99][..], b"\n"].concat();
    let bytes = bench.pick(INPUT_BYTES, INPUT_BYTES / 16) / line.len() * line.len();
    std::fs::write(bench.path("lines"), line.repeat(bytes / line.len()))?;
    let measure =
        |count, jobs: &[&str]| rounds(count, jobs.len(), |index| run_logger(bench, jobs[index], bytes));
    let name = format!("{} lines from a pipe: throughput beside cat > file", bytes / line.len());
    rows.push(row(name, 0.9, &measure(bench.pick(15, 3), &["weir log -q -o out", "cat > out"])?)?);
    for (program, command, least) in
        [("s6-log", "s6-log n2 s268435455 ./s6", 5.0), ("multilog", "multilog s16777215 n50 ./multi", 5.0)]
    {
        let name = format!("lines from a pipe: throughput beside {program}");
        if !has(program) {
            rows.push(Target::missing(&name, program));
            continue;
        }
        rows.push(row(name, least, &measure(3, &["weir log -q -o out", command])?)?);
    }
    add_rsyslog(bench, rows, bytes)
}

/// Returns the row of the other's time divided by that of weir, which comes first in each round.
fn row(name: String, least: f64, seconds: &[Vec<f64>]) -> Result<Target, BoxError> {
    let speedup = paired(pairs(seconds, 1, 0))?;
    Ok(Target {
        name,
        target: format!("at least {least}"),
        measured: ratio(&speedup),
        reached: speedup.value >= least,
    })
}

/// Adds the row beside rsyslog, which has no input for pipes: it gets the same lines through a stream socket.
fn add_rsyslog(bench: &BenchDir, rows: &mut Vec<Target>, bytes: usize) -> Result<(), BoxError> {
    let name = "lines from a pipe: throughput beside rsyslog with a socket";
    if !has("rsyslogd") {
        rows.push(Target::missing(name, "rsyslogd"));
        return Ok(());
    }
    let seconds = rounds(3, 2, |which| match which {
        0 => run_logger(bench, "weir log -q -o out", bytes),
        _ => run_rsyslog(bench, bytes),
    })?;
    rows.push(row(name.into(), 10.0, &seconds)?);
    Ok(())
}

/// Sends the lines to an rsyslogd that writes them unchanged. Returns the seconds until its log has all bytes.
fn run_rsyslog(bench: &BenchDir, bytes: usize) -> Result<f64, BoxError> {
    let [socket, out, config, pid] = ["s", "out", "rsyslog.conf", "rsyslog.pid"].map(|name| bench.path(name));
    let _ = std::fs::remove_file(&out);
    let text = format!(
        "module(load=\"imptcp\")\n\
         template(name=\"raw\" type=\"string\" string=\"%rawmsg%\\n\")\n\
         input(type=\"imptcp\" path=\"{}\" unlink=\"on\" ruleset=\"file\")\n\
         ruleset(name=\"file\") {{ action(type=\"omfile\" file=\"{}\" template=\"raw\") }}\n",
        socket.display(),
        out.display()
    );
    std::fs::write(&config, text)?;
    let mut command = Command::new("rsyslogd");
    command.arg("-n").arg("-f").arg(&config).arg("-i").arg(&pid);
    let _server = Server::start(&mut command, &socket)?;
    let mut client = connect(&socket)?;
    let started = Instant::now();
    std::io::copy(&mut File::open(bench.path("lines"))?, &mut client)?;
    drop(client);
    wait_until("all bytes", || Ok(std::fs::metadata(&out).is_ok_and(|out| out.len() >= bytes as u64)))?;
    let seconds = started.elapsed().as_secs_f64();
    match file_bytes(&out) {
        written if written == bytes as u64 => Ok(seconds),
        written => Err(format!("rsyslogd wrote {written} bytes, expected {bytes}").into()),
    }
}

/// The file of weir and of cat, and the directories of s6-log and multilog.
const OUTPUTS: [&str; 3] = ["out", "s6", "multi"];

/// Removes earlier output and runs a logger at the end of a pipe. Returns the seconds until it has ended. Fails if it has not
/// written all bytes.
fn run_logger(bench: &BenchDir, command: &str, bytes: usize) -> Result<f64, BoxError> {
    for path in OUTPUTS.map(|name| bench.path(name)) {
        let _ = std::fs::remove_file(&path);
        let _ = std::fs::remove_dir_all(&path);
    }
    let directory = bench.path("lines").parent().ok_or("the input has no directory")?.to_path_buf();
    let command = command.replacen("weir ", &format!("{} ", weir()), 1);
    let started = Instant::now();
    let mut writer = Command::new("cat").arg(bench.path("lines")).stdout(Stdio::piped()).spawn()?;
    let pipe = writer.stdout.take().ok_or("cat has no pipe")?;
    let status = Command::new("sh")
        .args(["-c", &format!("exec {command}")])
        .current_dir(&directory)
        .stdin(pipe)
        .status()?;
    let seconds = started.elapsed().as_secs_f64();
    let has_sent_all = writer.wait()?.success();
    if !status.success() || !has_sent_all {
        return Err(format!("{command}: {status}").into());
    }
    match OUTPUTS.iter().map(|name| file_bytes(&bench.path(name))).sum::<u64>() {
        written if written == bytes as u64 => Ok(seconds),
        written => Err(format!("{command}: wrote {written} bytes, expected {bytes}").into()),
    }
}

/// Returns the bytes of a file, or of the files in a directory; 0 if neither exists.
fn file_bytes(path: &Path) -> u64 {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| entry.metadata().map_or(0, |found| found.len())).sum(),
        Err(_) => std::fs::metadata(path).map_or(0, |found| found.len()),
    }
}
