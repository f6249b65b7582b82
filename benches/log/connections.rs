//! Many connections, and none.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::BoxError;
use crate::bench_dir::BenchDir;
use crate::collector::{Server, connect, wait_until, weir_log};
use crate::figure::summary;
use crate::targets::Target;

const CONNECTIONS: usize = 10_000;
const SECONDS: usize = 10;
const SLICES: usize = 100;
/// The pause of the reader of the log between two reads.
const POLL: Duration = Duration::from_micros(20);

fn start(bench: &BenchDir) -> Result<Server, BoxError> {
    let (socket, out) = (bench.path("s"), bench.path("out"));
    let _ = std::fs::remove_file(&out);
    Server::start(&mut weir_log(&socket, &out), &socket)
}

pub fn rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    raise_file_limit();
    let connections = bench.pick(CONNECTIONS, 500);
    let server = start(bench)?;
    let connect = || connect(&bench.path("s"));
    let mut sockets: Vec<UnixStream> = (0..connections).map(|_| connect()).collect::<Result<_, _>>()?;
    let mut probe = connect()?;
    let (mut delays, mut sent) = (Vec::new(), 0);
    let started = Instant::now();
    // Each tenth of a second every connection sends a record; they take turns in slices of a millisecond.
    for turn in 0..SECONDS * 10 * SLICES {
        let begin = turn % SLICES * connections / SLICES;
        let end = (turn % SLICES + 1) * connections / SLICES;
        for socket in &mut sockets[begin..end] {
            socket.write_all(b"a record of a connection, with its newline at the end\n")?;
            sent += 1;
        }
        if turn % 50 == 0 {
            delays.push(delay_of(&mut probe, bench, delays.len())?);
        }
        let next = started + Duration::from_millis(turn as u64 + 1);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    let rate = sent as f64 / started.elapsed().as_secs_f64();
    let expected = sent * 54 + delays.len() * 16;
    let out = bench.path("out");
    wait_until("all records", || Ok(std::fs::metadata(&out)?.len() >= expected as u64))?;
    let memory_mib = server.status("VmHWM:")? as f64 / 1024.0;
    let delay = summary(&delays)?;
    rows.push(Target {
        name: format!("{connections} connections: records sent and logged"),
        target: "all".into(),
        measured: format!("{sent} of {sent}, {rate:.0} a second"),
        reached: std::fs::metadata(&out)?.len() == expected as u64,
    });
    rows.push(Target {
        name: "the same: from the send to the log".into(),
        target: "at most 1 ms (median)".into(),
        measured: format!(
            "{:.3} ms, quartiles {:.3} and {:.3}",
            delay.median * 1e3,
            delay.q1 * 1e3,
            delay.q3 * 1e3
        ),
        reached: delay.median <= 1e-3,
    });
    rows.push(Target {
        name: "the same: memory".into(),
        target: "at most 200 MiB".into(),
        measured: format!("{memory_mib:.1} MiB"),
        reached: memory_mib <= 200.0,
    });
    Ok(())
}

/// Sends a record and reads the end of the log until it is there. Returns the seconds.
fn delay_of(probe: &mut UnixStream, bench: &BenchDir, number: usize) -> Result<f64, BoxError> {
    let record = format!("probe {number:09}\n");
    let log = File::open(bench.path("out"))?;
    let mut from = log.metadata()?.len();
    let started = Instant::now();
    probe.write_all(record.as_bytes())?;
    let mut seen = Vec::new();
    let mut block = vec![0; 1 << 16];
    loop {
        let count = log.read_at(&mut block, from)?;
        seen.extend_from_slice(&block[..count]);
        from += count as u64;
        if count > 0 && seen.windows(record.len()).any(|window| window == record.as_bytes()) {
            return Ok(started.elapsed().as_secs_f64());
        }
        if started.elapsed() > Duration::from_secs(30) {
            return Err("a record did not arrive in the log".into());
        }
        // A reader that never sleeps takes a processor from the collector: the median is 1.5 ms then, not 0.3 ms.
        std::thread::sleep(POLL);
    }
}

pub fn idle_rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let server = start(bench)?;
    std::thread::sleep(Duration::from_millis(500));
    let before = server.status("voluntary_ctxt_switches:")?;
    std::thread::sleep(Duration::from_secs(bench.pick(10, 2)));
    let wakeups = server.status("voluntary_ctxt_switches:")? - before;
    let memory_kib = server.status("VmRSS:")?;
    rows.push(Target {
        name: "idle: wake-ups in ten seconds".into(),
        target: "0".into(),
        measured: wakeups.to_string(),
        reached: wakeups == 0,
    });
    rows.push(Target {
        name: "idle: resident memory".into(),
        target: "at most 5 MiB and the buffer of 1 MiB".into(),
        measured: format!("{:.1} MiB", memory_kib as f64 / 1024.0),
        reached: memory_kib <= 6 << 10,
    });
    Ok(())
}

fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
