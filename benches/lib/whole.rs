//! Whole programs: the elapsed times of the examples tail and tr, compared with GNU's.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::data::{Data, same_files};
use crate::jobs::Requirement;
use crate::judge::{missing, target};
use crate::rounds::interleave;
use crate::targets::Target;
use crate::{BoxError, target_dir};

/// A command line for our program and GNU's.
struct Job {
    name: &'static str,
    program: &'static str,
    arguments: Vec<String>,
    input: Option<PathBuf>,
    budget_s: f64,
}

pub fn run(data: &Data, targets: &mut Vec<Target>) -> Result<(), BoxError> {
    let big = data.big()?;
    let last = |name, lines: u64, budget_s| {
        let arguments = vec!["-n".into(), lines.to_string(), big.display().to_string()];
        Job { name, program: "tail", arguments, input: None, budget_s }
    };
    let jobs = [
        last("tail -n 10 of 1 GiB: GNU tail", 10, 5.0),
        last("tail -n 1000000 of 1 GiB: GNU tail", 1_000_000, 9.0),
        Job {
            name: "tr a-z A-Z of 256 MiB: GNU tr",
            program: "tr",
            arguments: vec!["a-z".into(), "A-Z".into()],
            input: Some(data.for_tr()?),
            budget_s: 12.0,
        },
    ];
    for job in jobs {
        targets.push(compare(&job, data)?);
    }
    Ok(())
}

fn is_gnu(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("GNU coreutils"))
}

/// Runs a program and returns the seconds from its start until wait(2) returns.
fn once(job: &Job, program: &Path, out: &Path) -> Result<f64, BoxError> {
    let out = File::options().write(true).create(true).truncate(false).open(out)?;
    let input =
        job.input.as_ref().map_or_else(|| Ok(Stdio::null()), |path| File::open(path).map(Stdio::from))?;
    let mut command = Command::new(program);
    command.args(&job.arguments).stdin(input).stdout(out);
    let started = Instant::now();
    let status = command.status()?;
    let seconds = started.elapsed().as_secs_f64();
    if status.success() { Ok(seconds) } else { Err(format!("{command:?}: {status}").into()) }
}

/// Compares our program with GNU's, which runs twice per round for the noise.
fn compare(job: &Job, data: &Data) -> Result<Target, BoxError> {
    let requirement = Requirement::NotSlowerThan(1.0);
    let ours = target_dir().join("libweir/examples").join(job.program);
    let gnu = PathBuf::from(job.program);
    if !ours.exists() {
        return Ok(missing(job.name, requirement, &format!("{} was not built", ours.display())));
    }
    if !is_gnu(job.program) {
        return Ok(missing(job.name, requirement, "GNU's is not installed"));
    }
    let [ours_out, gnu_out] = ["ours", "gnu"].map(|name| data.output().with_extension(name));
    once(job, &ours, &ours_out)?;
    once(job, &gnu, &gnu_out)?;
    if !same_files(&ours_out, &gnu_out)? {
        return Err(format!("{}: our output differs from GNU's", job.name).into());
    }
    // All runs overwrite one file, so that its pages cost the same for each.
    std::fs::remove_file(&gnu_out)?;
    let programs = [&ours, &gnu, &gnu];
    let samples = interleave(programs.len(), job.budget_s, |i, _| once(job, programs[i], &ours_out))?;
    std::fs::remove_file(&ours_out)?;
    let pairs =
        |a: usize, b: usize| samples[a].iter().copied().zip(samples[b].iter().copied()).collect::<Vec<_>>();
    let noise = weir_model::Ratio::paired(pairs(1, 2)).ok_or("no pair")?;
    let middle = |i: usize| weir_model::stats::median(&mut samples[i].clone()) * 1e3;
    let remark = format!(
        " ({:.2} and {:.2} ms); GNU's twice [{:.2}, {:.2}]",
        middle(0),
        middle(1),
        noise.ci95[0],
        noise.ci95[1]
    );
    Ok(target(job.name, requirement, &pairs(0, 1), &remark))
}
