//! The cells of the comparison: file systems × kinds of sources.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use weir_bench::loop_image::LoopImage;

use crate::BoxError;
use crate::bench_dir::BenchDir;
use crate::figure::{information, ratio};
use crate::job::{Job, Sample, best_rival, installed, measure, ratio_of};
use crate::targets::Target;

const FILE_SYSTEMS: [&str; 4] = ["ext4", "xfs", "btrfs", "tmpfs"];
const FILE_BYTES: u64 = 256 << 20;
const SPARSE_BYTES: u64 = 2560 << 20;
/// CPU time beyond the least of the rivals, for one file.
const MAX_FILE_CPU: f64 = 1.05;
/// CPU time beyond cp's, for a tree.
const MAX_TREE_CPU: f64 = 1.15;
const MIN_TREE_GAIN: f64 = 1.5;

/// The first two are weir: the second one shows the noise of the machine.
const FILE_JOBS: [Job; 11] = [
    Job { name: "weir", line: "exec $W copy $S $D" },
    Job { name: "weir again", line: "exec $W copy $S $D" },
    Job { name: "cp", line: "exec cp $S $D" },
    Job { name: "dd", line: "exec dd if=$S of=$D bs=128k status=none" },
    Job { name: "dd", line: "exec dd if=$S of=$D bs=256k status=none" },
    Job { name: "dd", line: "exec dd if=$S of=$D bs=1M status=none" },
    Job { name: "cat", line: "exec cat $S > $D" },
    Job { name: "rsync", line: "exec rsync --whole-file $S $D" },
    Job { name: "mbuffer", line: "exec mbuffer -q -i $S -o $D" },
    Job { name: "xcp", line: "exec xcp --no-progress $S $D" },
    Job { name: "cpz", line: "exec cpz $S $D" },
];
const SPARSE_JOBS: [Job; 3] = [
    Job { name: "weir", line: "exec $W copy $S $D" },
    Job { name: "weir again", line: "exec $W copy $S $D" },
    Job { name: "cp", line: "exec cp $S $D" },
];
const TREE_JOBS: [Job; 6] = [
    Job { name: "weir", line: "exec $W copy -r $S $D" },
    Job { name: "weir again", line: "exec $W copy -r $S $D" },
    Job { name: "cp", line: "exec cp -r $S $D" },
    Job { name: "rsync", line: "exec rsync -r --whole-file $S/ $D" },
    Job { name: "xcp", line: "exec xcp --no-progress -r $S $D" },
    Job { name: "cpz", line: "exec cpz $S $D" },
];
const WALL: fn(&Sample) -> f64 = |sample| sample.wall_s;
const CPU: fn(&Sample) -> f64 = |sample| sample.cpu_s;

pub fn file_rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let bytes = bench.pick(FILE_BYTES, FILE_BYTES / 16);
    let rounds = bench.pick(9, 2);
    for system in FILE_SYSTEMS {
        let image = LoopImage::make(system, &bench.path(""), 3 * bytes)?;
        let (source, target) = (image.path().join("source"), image.path().join("target"));
        write_noise(&source, bytes)?;
        let jobs = installed(&FILE_JOBS);
        let warm = measure(rounds, &jobs, &source, &target, &|| Ok(()))?;
        add_file_rows(rows, &format!("{system}, {} MiB warm", bytes >> 20), &jobs, &warm)?;
        if system != "tmpfs" {
            let cold = measure(rounds, &jobs, &source, &target, &|| drop_source(&source))?;
            add_file_rows(rows, &format!("{system}, {} MiB cold", bytes >> 20), &jobs, &cold)?;
        }
        write_sparse(&source, bench.pick(SPARSE_BYTES, SPARSE_BYTES / 16))?;
        let jobs = installed(&SPARSE_JOBS);
        let sparse = measure(rounds, &jobs, &source, &target, &|| Ok(()))?;
        add_file_rows(rows, &format!("{system}, sparse, 1 % data"), &jobs, &sparse)?;
    }
    Ok(())
}

/// Adds time and CPU time of one cell, each beside the best rival.
fn add_file_rows(
    rows: &mut Vec<Target>,
    cell: &str,
    jobs: &[&Job],
    samples: &[Vec<Sample>],
) -> Result<(), BoxError> {
    for (what, value, most) in [("time", WALL, 1.0), ("CPU time", CPU, MAX_FILE_CPU)] {
        let best = best_rival(samples, 2, value);
        let beside = ratio_of(samples, 0, best, value)?;
        let floor = ratio_of(samples, 1, 0, value)?;
        // A difference within the interval of the measurement, or of weir beside itself, is none.
        let noise = (floor.ci95[1] - 1.0).max(1.0 - floor.ci95[0]).max(0.0);
        rows.push(Target {
            name: format!("{cell}: {what} beside {}", short(jobs[best])),
            target: format!("at most {most:.2}, beyond the noise"),
            measured: format!("{}; noise ±{:.0} %", ratio(&beside), noise * 100.0),
            reached: beside.ci95[0] <= most || beside.value <= most + noise,
        });
    }
    Ok(())
}

fn short(job: &Job) -> String {
    let block = job.line.split(' ').find(|word| word.starts_with("bs="));
    block.map_or_else(|| job.name.to_string(), |block| format!("{} {block}", job.name))
}

pub fn tree_rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let folders = bench.pick(50, 5);
    for system in FILE_SYSTEMS {
        let image = LoopImage::make(system, &bench.path(""), 256 << 20)?;
        let (source, target) = (image.path().join("source"), image.path().join("target"));
        write_tree(&source, folders)?;
        let jobs = installed(&TREE_JOBS);
        let samples = measure(bench.pick(9, 2), &jobs, &source, &target, &|| Ok(()))?;
        let (time, cpu) = (ratio_of(&samples, 2, 0, WALL)?, ratio_of(&samples, 0, 2, CPU)?);
        let cell = format!("{system}, {} files of 4 KiB", folders * 100);
        rows.push(Target {
            name: format!("{cell}: times as fast as cp -r"),
            target: format!("at least {MIN_TREE_GAIN}"),
            measured: ratio(&time),
            reached: time.value >= MIN_TREE_GAIN,
        });
        rows.push(Target {
            name: format!("{cell}: CPU time beside cp -r"),
            target: format!("at most {MAX_TREE_CPU}"),
            measured: ratio(&cpu),
            reached: cpu.value <= MAX_TREE_CPU,
        });
        for (number, job) in jobs.iter().enumerate().skip(3) {
            let beside = ratio_of(&samples, 0, number, WALL)?;
            rows.push(information(format!("{cell}: time beside {}", job.name), ratio(&beside)));
        }
    }
    Ok(())
}

/// Writes bytes that no file system compresses or shares.
pub fn write_noise(path: &Path, bytes: u64) -> Result<(), BoxError> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut file = File::create(path)?;
    for _ in 0..bytes >> 20 {
        let block: Vec<u8> = (0..1 << 17).flat_map(|_| next()).collect();
        file.write_all(&block)?;
    }
    Ok(file.sync_all()?)
}

/// Writes a file with 64 KiB of data in every 6.4 MiB.
fn write_sparse(path: &Path, bytes: u64) -> Result<(), BoxError> {
    let file = File::create(path)?;
    file.set_len(bytes)?;
    for at in (0..bytes - (1 << 16)).step_by(100 << 16) {
        file.write_all_at(&[7; 1 << 16], at)?;
    }
    Ok(file.sync_all()?)
}

/// Writes folders of 100 files.
pub fn write_tree(path: &Path, folders: usize) -> Result<(), BoxError> {
    for folder in 0..folders {
        let folder = path.join(folder.to_string());
        fs::create_dir_all(&folder)?;
        for file in 0..100_u8 {
            fs::write(folder.join(file.to_string()), [file; 4096])?;
        }
    }
    rustix::fs::syncfs(File::open(path)?)?;
    Ok(())
}

/// Drops the source from the page cache, and not the programs that are compared.
fn drop_source(source: &Path) -> Result<(), BoxError> {
    let file = File::open(source)?;
    rustix::fs::syncfs(&file)?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    let pages = weir_sys::page_cache::cached_pages(&file, 0, 0)?;
    if pages.cached > 0 {
        Err(format!("{} pages of the source stay cached", pages.cached).into())
    } else {
        Ok(())
    }
}
