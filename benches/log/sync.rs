//! Group commit: 16 senders, each of which waits for the acknowledgement of its record before it sends the next one.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use crate::BoxError;
use crate::bench_dir::BenchDir;
use crate::collector::{Server, connect, weir_log};
use crate::figure::{paired, ratio, summary};
use crate::rounds::{pairs, rounds};
use crate::targets::Target;

const SENDERS: usize = 16;
const RECORDS: usize = 200;

pub fn rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let records = bench.pick(RECORDS, 20);
    let seconds = rounds(bench.pick(9, 3), 2, |which| match which {
        0 => grouped(bench, records),
        _ => one_by_one(bench, records * SENDERS),
    })?;
    let speedup = paired(pairs(&seconds, 1, 0))?;
    let rates: Vec<f64> = seconds.iter().map(|row| (records * SENDERS) as f64 / row[0]).collect();
    rows.push(Target {
        name: "16 senders, --sync record --ack: times as many records/s as one fdatasync per record".into(),
        target: "at least 5".into(),
        measured: format!("{}; {:.0} records/s", ratio(&speedup), summary(&rates)?.median),
        reached: speedup.value >= 5.0,
    });
    Ok(())
}

fn grouped(bench: &BenchDir, records: usize) -> Result<f64, BoxError> {
    let (socket, out) = (bench.path("s"), bench.path("out"));
    let _ = std::fs::remove_file(&out);
    let mut command = weir_log(&socket, &out);
    command.args(["--sync", "record", "--ack"]);
    let _server = Server::start(&mut command, &socket)?;
    let sockets: Vec<UnixStream> = (0..SENDERS).map(|_| connect(&socket)).collect::<Result<_, _>>()?;
    let started = Instant::now();
    std::thread::scope(|scope| {
        let senders: Vec<_> =
            sockets.iter().map(|socket| scope.spawn(move || send(socket, records))).collect();
        senders.into_iter().try_for_each(|sender| {
            let sent = sender.join().map_err(|_| "a sender panicked".to_string())?;
            sent.map_err(|error| format!("a sender failed: {error}"))
        })
    })?;
    Ok(started.elapsed().as_secs_f64())
}

/// Sends records, and waits for the acknowledgement of each. Fails with UnexpectedEof if `weir log` ends before that.
fn send(socket: &UnixStream, records: usize) -> std::io::Result<()> {
    let mut acks = BufReader::new(socket);
    let mut line = String::new();
    for number in 1..=records {
        (&*socket).write_all(&[&[b'x'; 99][..], b"\n"].concat())?;
        loop {
            line.clear();
            if acks.read_line(&mut line)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            if line.trim().parse::<usize>().is_ok_and(|acknowledged| acknowledged >= number) {
                break;
            }
        }
    }
    Ok(())
}

fn one_by_one(bench: &BenchDir, records: usize) -> Result<f64, BoxError> {
    let mut file = File::create(bench.path("one-by-one"))?;
    let started = Instant::now();
    for _ in 0..records {
        file.write_all(&[&[b'x'; 99][..], b"\n"].concat())?;
        file.sync_data()?;
    }
    Ok(started.elapsed().as_secs_f64())
}
