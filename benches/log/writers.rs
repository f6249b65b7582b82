//! 25 clients of socat, each with records of 9,999 bytes of one letter, through one stream socket.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::BoxError;
use crate::bench_dir::BenchDir;
use crate::collector::{Server, has, wait_until};
use crate::figure::{paired, ratio, summary};
use crate::rounds::{pairs, rounds};
use crate::targets::Target;
use crate::targets::built::weir;

const WRITERS: usize = 25;
const RECORD: usize = 9999;
const RECORDS: usize = 3000;
const RIVALS: [&str; 4] = ["weir", "socat", "nc", "discard"];

pub fn rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    if !has("socat") || !has("nc") {
        rows.push(Target::missing("25 writers", "socat and nc"));
        return Ok(());
    }
    let records = bench.pick(RECORDS, 100);
    for writer in 0..WRITERS {
        std::fs::write(bench.path(&format!("data-{writer}")), vec![b'a' + writer as u8; RECORD * records])?;
    }
    let mut cpu = Vec::new();
    let mut torn = 0;
    let seconds = rounds(bench.pick(9, 3), RIVALS.len(), |which| {
        let (seconds, cpu_s) = collect(bench, RIVALS[which], WRITERS * RECORD * records)?;
        cpu.push((which, cpu_s));
        if RIVALS[which] == "weir" {
            torn += torn_records(&bench.path("out"), records)?;
        }
        Ok(seconds)
    })?;
    let of = |which: usize| cpu.iter().filter(move |(one, _)| *one == which).map(|(_, cpu_s)| *cpu_s);
    let socat = paired(pairs(&seconds, 1, 0))?;
    let discard = paired(pairs(&seconds, 3, 0))?;
    let nc = paired(pairs(&seconds, 2, 0))?;
    let cpu_ratio = paired(of(0).zip(of(1)))?;
    let mib = (WRITERS * RECORD * records) as f64 / 1_048_576.0;
    let own: Vec<f64> = seconds.iter().map(|row| mib / row[0]).collect();
    rows.push(Target {
        name: format!(
            "25 writers, {} records: throughput beside socat, or a sink that discards",
            WRITERS * records
        ),
        target: "at least 1.5 times socat, or 0.95 of the sink".into(),
        measured: format!(
            "socat {}, sink {}; {:.0} MiB/s",
            ratio(&socat),
            ratio(&discard),
            summary(&own)?.median
        ),
        reached: socat.value >= 1.5 || discard.value >= 0.95,
    });
    rows.push(Target {
        name: "the same: CPU time beside socat".into(),
        target: "at most 0.5".into(),
        measured: ratio(&cpu_ratio),
        reached: cpu_ratio.value <= 0.5,
    });
    rows.push(Target {
        name: "the same: throughput beside nc -lkU".into(),
        target: "at least 1".into(),
        measured: ratio(&nc),
        reached: nc.value >= 1.0 || nc.ci95[1] >= 1.0,
    });
    rows.push(Target {
        name: "the same: torn records of all rounds".into(),
        target: "0".into(),
        measured: torn.to_string(),
        reached: torn == 0,
    });
    Ok(())
}

fn server(bench: &BenchDir, rival: &str) -> Command {
    let (socket, out) = (bench.path("s"), bench.path("out"));
    let (socket_text, out_text) = (socket.display(), out.display());
    let mut command;
    match rival {
        "weir" => {
            command = Command::new(weir());
            command.args(["log", "--quiet", "--record", "len:9999", "-o"]).arg(&out);
            command.arg("--listen").arg(format!("unix:{socket_text}"));
        }
        "socat" => {
            command = Command::new("socat");
            command.arg("-u").arg(format!("UNIX-LISTEN:{socket_text},fork,backlog=64"));
            command.arg(format!("OPEN:{out_text},creat,append"));
        }
        "nc" => {
            command = Command::new("sh");
            command.arg("-c").arg(format!("exec nc -lkU '{socket_text}' > '{out_text}'"));
        }
        _ => {
            command = Command::new("socat");
            command.arg("-u").arg(format!("UNIX-LISTEN:{socket_text},fork,backlog=64")).arg("/dev/null");
        }
    }
    command
}

/// Runs all clients. Returns the seconds until the log has all bytes, and the CPU seconds of the server.
fn collect(bench: &BenchDir, rival: &str, bytes: usize) -> Result<(f64, f64), BoxError> {
    let (socket, out) = (bench.path("s"), bench.path("out"));
    let _ = std::fs::remove_file(&out);
    let server = Server::start(&mut server(bench, rival), &socket)?;
    let started = Instant::now();
    let clients = (0..WRITERS).map(|writer| {
        let data = bench.path(&format!("data-{writer}"));
        let from = format!("OPEN:{},rdonly", data.display());
        Command::new("socat").args(["-u", &from, &format!("UNIX-CONNECT:{}", socket.display())]).spawn()
    });
    let clients: Vec<_> = clients.collect::<Result<_, _>>()?;
    for mut client in clients {
        let status = client.wait()?;
        if !status.success() {
            return Err(format!("a client of {rival}: {status}").into());
        }
    }
    if rival != "discard" {
        let length = || Ok(std::fs::metadata(&out).is_ok_and(|out| out.len() >= bytes as u64));
        wait_until("all bytes", length)?;
    }
    let seconds = started.elapsed().as_secs_f64();
    // The forked servers of socat count when they have ended.
    std::thread::sleep(std::time::Duration::from_millis(50));
    Ok((seconds, server.cpu_s()?))
}

/// Returns how many records are missing or not whole.
fn torn_records(out: &Path, records: usize) -> Result<usize, BoxError> {
    let bytes = std::fs::read(out)?;
    let whole = bytes
        .chunks(RECORD)
        .filter(|record| record.len() == RECORD && record.iter().all(|byte| *byte == record[0]));
    Ok(WRITERS * records - whole.count())
}
