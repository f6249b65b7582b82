//! Durability, the page cache, and the start.

use std::process::{Command, Stdio};

use crate::BoxError;
use crate::bench_dir::BenchDir;
use crate::cells::{write_noise, write_tree};
use crate::figure::{information, millis, ratio, summary};
use crate::job::{Job, installed, measure, ratio_of};
use crate::targets::Target;
use crate::targets::built::weir;

const MIN_SYNC_GAIN: f64 = 3.0;
const MAX_CACHED_SHARE: f64 = 0.01;
const MAX_DIRTY: u64 = 64 << 20;
const MAX_START_S: f64 = 0.002;

pub fn sync_rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    const JOBS: [Job; 2] = [
        Job { name: "weir", line: "exec $W copy -r --sync full $S $D" },
        Job { name: "cp", line: "cp -r $S $D && find $D -type f -exec sync {} +" },
    ];
    let (source, target) = (bench.path("source-tree"), bench.path("target-tree"));
    write_tree(&source, bench.pick(10, 2))?;
    let samples = measure(bench.pick(7, 2), &installed(&JOBS), &source, &target, &|| Ok(()))?;
    let gain = ratio_of(&samples, 1, 0, |sample| sample.wall_s)?;
    rows.push(Target {
        name: "1,000 files of 4 KiB with --sync full: times as fast as cp and an fsync of each".into(),
        target: format!("at least {MIN_SYNC_GAIN}"),
        measured: ratio(&gain),
        reached: gain.value >= MIN_SYNC_GAIN,
    });
    Ok(())
}

pub fn cache_rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let bytes = bench.pick(1 << 30, 64 << 20);
    let (source, target) = (bench.path("source"), bench.path("target"));
    write_noise(&source, bytes)?;
    Command::new("dd")
        .arg(format!("if={}", source.display()))
        .args(["iflag=nocache", "count=0", "status=none"])
        .status()?;
    let mut child = Command::new(weir())
        .args(["copy", "--reflink=never", "--cache", "drop", "--json", "-"])
        .args([&source, &target])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut dirty_most = 0;
    while child.try_wait()?.is_none() {
        if let Ok(file) = std::fs::File::open(&target)
            && let Ok(pages) = weir_sys::page_cache::cached_pages(&file, 0, 0)
        {
            dirty_most = dirty_most.max((pages.dirty + pages.writeback) * rustix::param::page_size() as u64);
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let document: serde_json::Value = serde_json::from_slice(&child.wait_with_output()?.stdout)?;
    let cached = document["cached_bytes"].as_u64().ok_or("no cachestat")? as f64 / bytes as f64;
    rows.push(Target {
        name: format!("--cache drop, {} MiB: share of the target that stays cached", bytes >> 20),
        target: format!("less than {MAX_CACHED_SHARE}"),
        measured: format!("{cached:.5}"),
        reached: cached < MAX_CACHED_SHARE,
    });
    rows.push(Target {
        name: "--cache drop: most dirty bytes of the target, sampled every 2 ms".into(),
        target: format!("at most {} MiB", MAX_DIRTY >> 20),
        measured: format!("{:.1} MiB", dirty_most as f64 / f64::from(1 << 20)),
        reached: dirty_most <= MAX_DIRTY,
    });
    Ok(())
}

pub fn start_rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    const JOBS: [Job; 3] = [
        Job { name: "weir", line: "exec $W copy $S $D" },
        Job { name: "cp", line: "exec cp $S $D" },
        Job { name: "weir true", line: "exec true" },
    ];
    let (source, target) = (bench.path("small"), bench.path("small-target"));
    std::fs::write(&source, "small\n")?;
    let samples = measure(bench.pick(101, 9), &installed(&JOBS), &source, &target, &|| Ok(()))?;
    let more = |job: usize| {
        summary(&samples.iter().map(|row| row[job].wall_s - row[2].wall_s).collect::<Vec<f64>>())
    };
    let start = more(0)?;
    rows.push(Target {
        name: "a file of 6 bytes: whole run, more than sh -c true".into(),
        target: format!("at most {:.0} ms", MAX_START_S * 1e3),
        measured: millis(&start),
        reached: start.median <= MAX_START_S,
    });
    rows.push(information("the same by cp".into(), millis(&more(1)?)));
    Ok(())
}
