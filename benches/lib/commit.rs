//! Group commit: durable records per second, on the file system of the target directory.

use std::io::{BufRead, BufReader};
use std::path::Path;

use weir_bench::directory::{BenchDirectory, DirectoryRequest};

use crate::contender::{self, Entry, Program};
use crate::jobs::Requirement;
use crate::judge::{missing, target};
use crate::rounds::interleave;
use crate::targets::Target;
use crate::{BoxError, Report, say, target_dir};

const MILLIS: u64 = 600;
const BUDGET_S: f64 = 16.0;

/// Checks that the file has every counted record, none of them torn.
fn check(path: &Path, records: f64) -> Result<(), BoxError> {
    let (mut lines, mut length) = (0_u64, None);
    for line in BufReader::new(std::fs::File::open(path)?).lines() {
        let bytes = line?.len();
        if *length.get_or_insert(bytes) != bytes {
            return Err(format!("{}: a torn record", path.display()).into());
        }
        lines += 1;
    }
    if lines as f64 == records { Ok(()) } else { Err(format!("{lines} records of {records}").into()) }
}

/// Runs an entry on a new file and returns the nanoseconds per record.
fn once(entry: &Entry, place: &BenchDirectory) -> Result<f64, BoxError> {
    let path = place.file("commit");
    let sample = contender::run_on(entry, Path::new("-"), &path, 0)?;
    check(&path, sample.units)?;
    std::fs::remove_file(&path)?;
    Ok(sample.elapsed_ns / sample.units)
}

pub fn run(report: &mut Report) -> Result<(), BoxError> {
    let place = BenchDirectory::open(&DirectoryRequest::Dir(target_dir()), 256 << 20)?;
    let row = "group commit: an fdatasync for each record";
    let row_concurrent = "group commit: 16 threads, an fdatasync each";
    let requirement = Requirement::TimesAsFast(5.0);
    let entry = |name| Entry::new(name, Program::Commit, "commit", name).count(MILLIS);
    let entries = [entry("group"), entry("each"), entry("single")];
    if let Some(why) = Program::Commit.absent() {
        report.targets.push(missing(row, requirement, &why));
        return Ok(());
    }
    let samples = interleave(entries.len(), BUDGET_S, |i, _| once(&entries[i], &place))?;
    say(&format!("  {} rounds of {}", samples[0].len(), entries.len()));
    let rate = |values: &[f64]| 1e9 / weir_model::stats::median(&mut values.to_vec());
    let remark = |theirs: &[f64]| {
        format!(" ({:.0} and {:.0} records/s on {})", rate(&samples[0]), rate(theirs), place.fs)
    };
    let pairs = |theirs: &[f64]| -> Vec<(f64, f64)> {
        samples[0].iter().copied().zip(theirs.iter().copied()).collect()
    };
    report.targets.push(target(row, requirement, &pairs(&samples[2]), &remark(&samples[2])));
    // The file system also gathers concurrent syncs, so this row has no target.
    let gathered = target(row_concurrent, requirement, &pairs(&samples[1]), &remark(&samples[1]));
    report.targets.push(Target { target: "information".into(), reached: true, ..gathered });
    Ok(())
}
