//! Programs as people run them all day: the build of a small C project, and `git log`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use weir_model::Ratio;
use weir_sys::command::find;

use crate::bed::Bed;
use crate::figure::{at_most, information, paired, ratio, summary};
use crate::targets::Target;
use crate::traced::{self, weir};
use crate::{Failed, process};

const C_FILES: usize = 20;
/// As many as a project of some years has: `git log` of a few hundred takes 5 ms, as weir's own end does.
const COMMITS: usize = 20_000;
const FEW: usize = 300;
const LINES: usize = 40;
const MOST: f64 = 1.03;
/// What a short command may pay whatever it does: its stop, its end and weir's own. As long as attaching may stop a program.
const MOST_MORE_MS: f64 = 5.0;

/// An interval is narrow enough at this to either side …
const NARROW: f64 = 0.008;
/// … or when there were so many times the rounds of a quiet machine.
const MOST_ROUNDS: usize = 3;

/// What is asked of a row.
#[derive(Clone, Copy)]
enum Most {
    /// So many times as long.
    Times(f64),
    /// So many milliseconds longer: of a command of 3 or 40 ms, of which 1.03 is less than one stop takes.
    MoreMs(f64),
    /// Whatever it is.
    Anything,
}

impl Most {
    /// Whether more rounds are to tell on which side of the limit it is.
    fn is_unsettled(self, times: &Ratio) -> bool {
        let [low, high] = times.ci95;
        matches!(self, Self::Times(_)) && high - low > 2.0 * NARROW
    }
}

/// A command line, where it is run, how often, and what it may take.
struct Job {
    name: String,
    words: Vec<String>,
    dir: PathBuf,
    rounds: usize,
    most: Most,
}

/// 20 C files that include what C files include, a main, and a Makefile that builds them one by one.
fn c_project(dir: &Path) -> std::io::Result<()> {
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
    // Nobody's settings, and no pager.
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").current_dir(dir);
    command
}

/// Commits that each change a line or two of one of ten files.
fn repository(dir: &Path, commits: usize) -> Result<(), Failed> {
    std::fs::create_dir(dir)?;
    process::seconds(git(dir).args(["init", "--quiet", "--initial-branch=main"]))?;
    let mut import = git(dir).args(["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn()?;
    let mut stream = String::new();
    for commit in 0..commits {
        let said = format!("Change {commit}\n\nWhat was wrong with file {} is right now.\n", commit % 10);
        let lines = (0..LINES).map(|line| {
            let changed = if (commit + line) % 19 == 0 { commit } else { 0 };
            format!("line {line} of a text that somebody wrote, {changed}\n")
        });
        let content: String = lines.collect();
        let _ = write!(
            stream,
            "commit refs/heads/main\ncommitter A <a@example.org> {} +0000\ndata {}\n{said}\n\
             M 100644 inline file{}.txt\ndata {}\n{content}\n",
            1_700_000_000 + commit * 3600,
            said.len(),
            commit % 10,
            content.len()
        );
    }
    import.stdin.take().ok_or("no pipe to git fast-import")?.write_all(stream.as_bytes())?;
    let status = import.wait()?;
    if status.success() { Ok(()) } else { Err(format!("git fast-import: {status}").into()) }
}

/// The same settings with and without weir.
fn prepare<'a>(job: &Job, command: &'a mut Command) -> &'a mut Command {
    command
        .current_dir(&job.dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL");
    process::silent(command)
}

/// One round: seconds under weir after start-up, of those the command's own, and seconds of the command alone.
struct Round {
    after: f64,
    own: f64,
    bare: f64,
}

fn round(bed: &Bed, job: &Job, weir_first: bool) -> Result<Round, Failed> {
    let alone = || process::seconds(prepare(job, Command::new(&job.words[0]).args(&job.words[1..])));
    let watched = || traced::run(bed, prepare(job, weir(bed, &["--"]).args(&job.words)));
    let (traced, bare) = if weir_first {
        let traced = watched()?;
        (traced, alone()?)
    } else {
        let bare = alone()?;
        (watched()?, bare)
    };
    Ok(Round { after: traced.after_startup()?, own: traced.lived()?, bare })
}

fn times(rounds: &[Round]) -> Result<Ratio, Failed> {
    paired(rounds.iter().map(|round| (round.after, round.bare)))
}

/// Where the noise is larger than what is to be measured there are more rounds, up to [`MOST_ROUNDS`] times as many.
fn rounds(bed: &Bed, job: &Job) -> Result<Vec<Round>, Failed> {
    let mut rounds = Vec::new();
    let (least, most) = bed.pick((job.rounds, job.rounds * MOST_ROUNDS), (3, 3));
    while rounds.len() < least || rounds.len() < most && job.most.is_unsettled(&times(&rounds)?) {
        rounds.push(round(bed, job, rounds.len() % 2 == 0)?);
    }
    Ok(rounds)
}

/// Rounds of the command alone and under weir.
fn row(bed: &Bed, job: &Job) -> Result<Target, Failed> {
    let rounds = rounds(bed, job)?;
    let millis = |of: fn(&Round) -> f64| summary(&rounds.iter().map(|one| of(one) * 1e3).collect::<Vec<_>>());
    let (more, bare) = (millis(|one| one.after - one.bare)?, millis(|one| one.bare)?);
    let own = ratio(&paired(rounds.iter().map(|one| (one.own, one.bare)))?);
    let own = format!("the command itself {own}; {} rounds", rounds.len());
    let times = times(&rounds)?;
    let [low, high] = more.ci95;
    let remark = format!("; {:+.1} ms to {:.0} ms; {own}", more.median, bare.median);
    Ok(match job.most {
        Most::Times(most) => at_most(job.name.clone(), most, &times, &remark),
        Most::Anything => information(job.name.clone(), format!("{}{remark}", ratio(&times))),
        Most::MoreMs(most) => Target {
            name: job.name.clone(),
            target: format!("at most {most:.0} ms more than bare"),
            measured: format!(
                "{:+.1} ms [{low:.1}, {high:.1}] to {:.1} ms: {}; {own}",
                more.median,
                bare.median,
                ratio(&times)
            ),
            reached: more.median <= most,
        },
    })
}

fn words(line: &[&str]) -> Vec<String> {
    line.iter().map(ToString::to_string).collect()
}

pub fn rows(bed: &Bed, rows: &mut Vec<Target>) -> Result<(), Failed> {
    let (project, history) = (bed.path("project"), bed.path("repository"));
    c_project(&project)?;
    let all = std::thread::available_parallelism().map_or(1, |processors| processors.get());
    // One job leaves weir a processor of its own; as many as there are do not.
    for (jobs, rounds, most) in [(1, 20, Most::Times(MOST)), (all, 10, Most::Anything)] {
        let name = format!("make -j{jobs} of {C_FILES} C files, after start-up");
        let words = words(&["make", "-B", "-s", &format!("-j{jobs}")]);
        rows.push(row(bed, &Job { name, words, dir: project.clone(), rounds, most })?);
    }
    if find("git").is_none() {
        rows.push(Target {
            name: "git log".into(),
            target: format!("at most {MOST:.2} times bare"),
            measured: "not here".into(),
            reached: false,
        });
        return Ok(());
    }
    repository(&history, COMMITS)?;
    let jobs: [(&[&str], _, _); 2] = [
        (&["git", "log"], 40, Most::Times(MOST)),
        (&["git", "log", "-p", "-2000"], 20, Most::MoreMs(MOST_MORE_MS)),
    ];
    for (line, rounds, most) in jobs {
        let name = format!("{} in {COMMITS} commits, after start-up", line.join(" "));
        rows.push(row(bed, &Job { name, words: words(line), dir: history.clone(), rounds, most })?);
    }
    let short = bed.path("short");
    repository(&short, FEW)?;
    let name = format!("git log of {FEW} commits, after start-up");
    rows.push(row(
        bed,
        &Job {
            name,
            words: words(&["git", "log"]),
            dir: short,
            rounds: 40,
            most: Most::MoreMs(MOST_MORE_MS),
        },
    )?);
    Ok(())
}
