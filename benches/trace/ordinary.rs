//! Ordinary programs: the build of a small C project, and `git log`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use weir_model::Ratio;
use weir_sys::command::find;

use crate::bench_dir::BenchDir;
use crate::figure::{at_most, information, paired, ratio, summary};
use crate::targets::Target;
use crate::traced::{self, weir};
use crate::{BoxError, process};

const C_FILES: usize = 20;
/// As many as a project of some years has. With a few hundred, `git log` takes 5 ms, as long as weir's shutdown.
const COMMITS: usize = 20_000;
const SHORT_COMMITS: usize = 300;
const LINES_PER_FILE: usize = 40;
const MAX_RATIO: f64 = 1.03;
/// Limit of the fixed cost of a command: the exec stop, the exit stop and weir's shutdown. It equals the limit for a stop at
/// attach.
const MAX_ADDED_MS: f64 = 5.0;

/// Half width of an interval that can be compared with [`MAX_RATIO`].
const MAX_HALF_WIDTH: f64 = 0.008;
/// Limit of the rounds, in multiples of the rounds that a quiet machine needs.
const MAX_ROUNDS_FACTOR: usize = 3;

/// The limit of a row.
#[derive(Clone, Copy)]
enum Limit {
    /// At most this many times as long.
    Times(f64),
    /// At most this many milliseconds longer: where 3 % of the command's time is less than one stop takes.
    MoreMs(f64),
    None,
}

impl Limit {
    /// Returns true if the interval is too wide to compare with the limit.
    fn is_unsettled(self, times: &Ratio) -> bool {
        let [low, high] = times.ci95;
        matches!(self, Self::Times(_)) && high - low > 2.0 * MAX_HALF_WIDTH
    }
}

/// A command that is measured. `rounds` suffice on a quiet machine.
struct Job {
    name: String,
    words: Vec<String>,
    dir: PathBuf,
    rounds: usize,
    limit: Limit,
}

/// Writes 20 C files that include the usual headers, a main.c, and a Makefile.
fn write_c_project(dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir(dir)?;
    let (mut objects, mut calls, mut declared) = (String::new(), String::new(), String::new());
    for file in 0..C_FILES {
        let mut text =
            "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n".to_string();
        for function in 0..30 {
            let _ = writeln!(
                text,
                "int work_{file}_{function}(const char *s, int n)\n{{\n    char line[256];\n    int sum = {function};\n\
                 \x20   for (int i = 0; i < n && s[i]; i++)\n        sum = sum * 31 + s[i] * {file};\n\
                 \x20   snprintf(line, sizeof line, \"%d %s\", sum, s);\n    return (int)strlen(line) ^ sum;\n}}"
            );
        }
        std::fs::write(dir.join(format!("part{file}.c")), text)?;
        let _ = write!(objects, " part{file}.o");
        let _ = writeln!(declared, "int work_{file}_0(const char *, int);");
        let _ = write!(calls, " + work_{file}_0(\"x\", argc)");
    }
    let text =
        format!("{declared}int main(int argc, char **argv)\n{{\n    return argv && (0{calls}) == 1;\n}}\n");
    std::fs::write(dir.join("main.c"), text)?;
    let rules = "%.o: %.c\n\tgcc -O1 -Wall -c -o $@ $<\n";
    std::fs::write(dir.join("Makefile"), format!("program: main.o{objects}\n\tgcc -o $@ $^\n{rules}"))
}

fn git(dir: &Path) -> Command {
    let mut command = Command::new("git");
    // Ignores the user's and the system's settings.
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").current_dir(dir);
    command
}

/// Makes a repository in which each commit changes a line or two of one of ten files.
fn write_repository(dir: &Path, commits: usize) -> Result<(), BoxError> {
    std::fs::create_dir(dir)?;
    process::seconds(git(dir).args(["init", "--quiet", "--initial-branch=main"]))?;
    let mut import = git(dir).args(["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn()?;
    let mut stream = String::new();
    for commit in 0..commits {
        let message = format!("Change {commit}\n\nWhat was wrong with file {} is right now.\n", commit % 10);
        let lines = (0..LINES_PER_FILE).map(|line| {
            let changed = if (commit + line) % 19 == 0 { commit } else { 0 };
            format!("line {line} of a text that somebody wrote, {changed}\n")
        });
        let content: String = lines.collect();
        let _ = write!(
            stream,
            "commit refs/heads/main\ncommitter A <a@example.org> {} +0000\ndata {}\n{message}\n\
             M 100644 inline file{}.txt\ndata {}\n{content}\n",
            1_700_000_000 + commit * 3600,
            message.len(),
            commit % 10,
            content.len()
        );
    }
    import.stdin.take().ok_or("no pipe to git fast-import")?.write_all(stream.as_bytes())?;
    let status = import.wait()?;
    if status.success() { Ok(()) } else { Err(format!("git fast-import: {status}").into()) }
}

/// Sets the directory and the environment, equal with and without weir.
fn prepare<'a>(job: &Job, command: &'a mut Command) -> &'a mut Command {
    command
        .current_dir(&job.dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL");
    process::silent(command)
}

/// The times of one round, in seconds.
struct Round {
    /// The run under weir, without weir's start-up.
    traced_s: f64,
    /// The command under weir, from its fork to its exit.
    traced_command_s: f64,
    /// The command without weir.
    bare_s: f64,
}

fn round(bench: &BenchDir, job: &Job, weir_first: bool) -> Result<Round, BoxError> {
    let run_bare = || process::seconds(prepare(job, Command::new(&job.words[0]).args(&job.words[1..])));
    let run_traced = || traced::run(bench, prepare(job, weir(bench, &["--"]).args(&job.words)));
    let (traced, bare_s) = if weir_first {
        let traced = run_traced()?;
        (traced, run_bare()?)
    } else {
        let bare_s = run_bare()?;
        (run_traced()?, bare_s)
    };
    Ok(Round { traced_s: traced.after_startup()?, traced_command_s: traced.command_time()?, bare_s })
}

fn times(rounds: &[Round]) -> Result<Ratio, BoxError> {
    paired(rounds.iter().map(|round| (round.traced_s, round.bare_s)))
}

/// Runs the rounds of a job, and up to [`MAX_ROUNDS_FACTOR`] times as many if the noise is larger than the margin of the target.
fn rounds(bench: &BenchDir, job: &Job) -> Result<Vec<Round>, BoxError> {
    let mut rounds = Vec::new();
    let (least, limit) = bench.pick((job.rounds, job.rounds * MAX_ROUNDS_FACTOR), (3, 3));
    while rounds.len() < least || rounds.len() < limit && job.limit.is_unsettled(&times(&rounds)?) {
        rounds.push(round(bench, job, rounds.len() % 2 == 0)?);
    }
    Ok(rounds)
}

/// Measures a job without and with weir.
fn row(bench: &BenchDir, job: &Job) -> Result<Target, BoxError> {
    let rounds = rounds(bench, job)?;
    let millis = |of: fn(&Round) -> f64| summary(&rounds.iter().map(|one| of(one) * 1e3).collect::<Vec<_>>());
    let (more, bare) = (millis(|one| one.traced_s - one.bare_s)?, millis(|one| one.bare_s)?);
    let own = ratio(&paired(rounds.iter().map(|one| (one.traced_command_s, one.bare_s)))?);
    let own = format!("the command itself {own}; {} rounds", rounds.len());
    let times = times(&rounds)?;
    let [low, high] = more.ci95;
    let remark = format!("; {:+.1} ms on {:.0} ms; {own}", more.median, bare.median);
    Ok(match job.limit {
        Limit::Times(limit) => at_most(job.name.clone(), limit, &times, &remark),
        Limit::None => information(job.name.clone(), format!("{}{remark}", ratio(&times))),
        Limit::MoreMs(limit) => Target {
            name: job.name.clone(),
            target: format!("at most {limit:.0} ms more than without weir"),
            measured: format!(
                "{:+.1} ms [{low:.1}, {high:.1}] on {:.1} ms: {}; {own}",
                more.median,
                bare.median,
                ratio(&times)
            ),
            reached: more.median <= limit,
        },
    })
}

fn words(line: &[&str]) -> Vec<String> {
    line.iter().map(ToString::to_string).collect()
}

pub fn rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let (project, history) = (bench.path("project"), bench.path("repository"));
    write_c_project(&project)?;
    let all = std::thread::available_parallelism().map_or(1, |processors| processors.get());
    // One job leaves weir a processor of its own; one job per processor does not.
    for (jobs, rounds, limit) in [(1, 20, Limit::Times(MAX_RATIO)), (all, 10, Limit::None)] {
        let name = format!("make -j{jobs} of {C_FILES} C files, after start-up");
        let words = words(&["make", "-B", "-s", &format!("-j{jobs}")]);
        rows.push(row(bench, &Job { name, words, dir: project.clone(), rounds, limit })?);
    }
    if find("git").is_none() {
        rows.push(Target {
            name: "git log".into(),
            target: format!("at most {MAX_RATIO:.2} times bare"),
            measured: "not installed".into(),
            reached: false,
        });
        return Ok(());
    }
    write_repository(&history, COMMITS)?;
    let jobs: [(&[&str], _, _); 2] = [
        (&["git", "log"], 40, Limit::Times(MAX_RATIO)),
        (&["git", "log", "-p", "-2000"], 20, Limit::MoreMs(MAX_ADDED_MS)),
    ];
    for (line, rounds, limit) in jobs {
        let name = format!("{} in {COMMITS} commits, after start-up", line.join(" "));
        rows.push(row(bench, &Job { name, words: words(line), dir: history.clone(), rounds, limit })?);
    }
    let short = bench.path("short");
    write_repository(&short, SHORT_COMMITS)?;
    let name = format!("git log of {SHORT_COMMITS} commits, after start-up");
    rows.push(row(
        bench,
        &Job {
            name,
            words: words(&["git", "log"]),
            dir: short,
            rounds: 40,
            limit: Limit::MoreMs(MAX_ADDED_MS),
        },
    )?);
    Ok(())
}
