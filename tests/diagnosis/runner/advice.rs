//! Follows the advice of a finding: runs the `weir run` command that it prints, and compares its code with the twin.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use weir_model::Finding;

use super::judge::{CaseResult, streams};
use super::set::LabelledCase;
use super::start::{StdStreams, finish, finish_with};
use super::workspace::{Workspace, command, run_as_user};
use crate::common::WEIR;

/// The factor within which a promise is kept.
const FACTOR: f64 = 1.5;
/// Bytes that reach their file this long before the end of the program were not written by its end.
const EARLY: Duration = Duration::from_millis(300);

/// One piece of advice, and what did not work of it.
pub struct AdviceResult {
    pub advice: String,
    pub failure: Option<String>,
}

/// Follows the advice of all findings of a broken program: each printed command, and the code of the case's own findings. `broken` and `fixed` are the workspaces of the two traced runs.
pub fn follow(
    case: &LabelledCase,
    findings: &[Finding],
    [broken, fixed]: [&Workspace; 2],
    result: &mut CaseResult,
) -> Result<(), String> {
    let own: Vec<&Finding> = findings.iter().filter(|finding| finding.id == case.finding).collect();
    if let Some(word) = &case.code {
        let failure = code_failure(case, word, &own);
        result.advice.push(AdviceResult { advice: format!("code: {word}"), failure });
    }
    let mut commands: Vec<&str> = Vec::new();
    let others = findings.iter().filter(|finding| finding.id != case.finding);
    for finding in own.into_iter().chain(others) {
        let Some(command) = finding.command.as_deref().filter(|command| !commands.contains(command)) else {
            continue;
        };
        commands.push(command);
        let failure = command_failure(case, finding, command, [broken, fixed])?;
        result.advice.push(AdviceResult { advice: command.into(), failure });
    }
    Ok(())
}

/// Returns why the printed code is not what the twin does. The word must be in a finding's fix and in the twin, or in
/// another number than in the broken program.
fn code_failure(case: &LabelledCase, word: &str, own: &[&Finding]) -> Option<String> {
    let count = |name: &str, command: &[String]| {
        let files =
            fs::read_dir(&case.dir).expect("the case's directory").map(|file| file.expect("an entry").path());
        let is_program = |path: &PathBuf| {
            path.file_stem().is_some_and(|stem| stem.to_string_lossy().to_lowercase() == name)
        };
        let text: String =
            files.filter(is_program).filter_map(|path| fs::read_to_string(path).ok()).collect();
        (text + &command.join(" ")).matches(word).count()
    };
    let (broken, fixed) = (count("broken", &case.run), count("fixed", &case.fixed));
    if fixed == 0 && broken == 0 {
        return Some(format!("neither program contains {word}"));
    }
    let named = own.iter().any(|finding| finding.fix.contains(word));
    (!named || fixed == 0 && broken == fixed).then(|| {
        format!(
            "no fix names it: {}",
            own.iter().map(|finding| finding.fix.as_str()).collect::<Vec<_>>().join(" | ")
        )
    })
}

/// Runs the printed command and returns what it did not achieve.
fn command_failure(
    case: &LabelledCase,
    finding: &Finding,
    printed: &str,
    [broken, fixed]: [&Workspace; 2],
) -> Result<Option<String>, String> {
    let advised = Workspace::of_case(case)?;
    let printed = printed.replace(&*broken.work().to_string_lossy(), &advised.work().to_string_lossy());
    if printed.contains(" --max-delay ") {
        return timely_failure(case, finding, &printed, [broken, &advised]);
    }
    if printed.contains(" --coalesce ") {
        return gathered_failure(case, finding, &printed, &advised);
    }
    let exit = finish(printed_command(&printed, &advised), &streams(&advised, case))?;
    if exit.status == 125 {
        return Ok(Some(format!("status 125: {}", super::start::last_errors(&streams(&advised, case)))));
    }
    // The twin shows what the output should be only for the case's own finding.
    let is_own = finding.id == case.finding;
    Ok(content_failure(finding, [broken, fixed, &advised]).filter(|_| is_own))
}

/// Returns the printed command, with the built weir first in PATH.
pub fn printed_command(printed: &str, workspace: &Workspace) -> Command {
    let mut bash = run_as_user(command(Path::new("bash"), &workspace.work()));
    let mut path = std::ffi::OsString::from(Path::new(WEIR).parent().expect("a directory"));
    path.push(":/usr/bin:/bin:");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    bash.args(["-c", printed]).env("PATH", path);
    bash
}

/// Returns the files that a finding is about: standard output and the file of its path.
fn outputs(finding: &Finding, origin: &Workspace, workspace: &Workspace) -> Vec<PathBuf> {
    let mut files = vec![workspace.work().join("out")];
    if let Ok(name) = Path::new(finding.path.exact()).strip_prefix(origin.work()) {
        files.push(workspace.work().join(name));
    }
    files.dedup();
    files
}

/// Compares the output of the advised run with that of the twin, or for lost bytes its length with the promise.
fn content_failure(finding: &Finding, [broken, fixed, advised]: [&Workspace; 3]) -> Option<String> {
    let read = |workspace| -> Vec<Vec<u8>> {
        outputs(finding, broken, workspace).iter().map(|path| fs::read(path).unwrap_or_default()).collect()
    };
    let (before, twin, after) = (read(broken), read(fixed), read(advised));
    if after == twin || sorted_lines(&after) == sorted_lines(&twin) {
        return None;
    }
    let length = |files: &[Vec<u8>]| files.iter().map(Vec::len).sum::<usize>() as f64;
    let gained = length(&after) - length(&before);
    let promised = finding.evidence.get("lost_bytes").copied().unwrap_or(0.0);
    // A program that runs until it is killed writes more on a faster machine, so there is no upper bound.
    // On a busy machine it writes less, perhaps less than the broken run did. Its output is whole nevertheless if it ends with a
    // whole line, where that of the broken run ends within one.
    let ends_whole = |files: &[Vec<u8>]| files.iter().all(|file| file.is_empty() || file.ends_with(b"\n"));
    let is_whole = !ends_whole(&before) && ends_whole(&after) && length(&after) > 0.0;
    let kept = promised > 0.0 && (gained >= promised / FACTOR || is_whole);
    (!kept).then(|| {
        format!(
            "output of {} bytes, the twin's has {}, {promised} were promised and {gained} gained",
            length(&after),
            length(&twin)
        )
    })
}

fn sorted_lines(files: &[Vec<u8>]) -> Vec<Vec<Vec<u8>>> {
    let sorted = |file: &Vec<u8>| {
        let mut lines: Vec<Vec<u8>> = file.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
        lines.sort();
        lines
    };
    files.iter().map(sorted).collect()
}

/// Runs a command and returns the number of bytes that were in its outputs some time before its end.
fn early_bytes(program: Command, files: &[PathBuf], streams: &StdStreams) -> Result<f64, String> {
    let mut seen: Vec<(Instant, u64)> = Vec::new();
    finish_with(program, streams, &mut || {
        let bytes = files.iter().filter_map(|path| fs::metadata(path).ok()).map(|about| about.len()).sum();
        if seen.last().is_none_or(|last| last.1 != bytes) {
            seen.push((Instant::now(), bytes));
        }
    })?;
    let end = Instant::now();
    let early = seen.iter().rfind(|(at, _)| end.duration_since(*at) >= EARLY);
    Ok(early.map_or(0.0, |(_, bytes)| *bytes as f64))
}

/// Compares what arrives early with and without the command.
fn timely_failure(
    case: &LabelledCase,
    finding: &Finding,
    printed: &str,
    [broken, advised]: [&Workspace; 2],
) -> Result<Option<String>, String> {
    let plain = Workspace::of_case(case)?;
    let early = |workspace: &Workspace, program| {
        early_bytes(program, &outputs(finding, broken, workspace), &streams(workspace, case))
    };
    let mut words = command(&plain.work().join(&case.run[0]), &plain.work());
    if !case.run[0].contains('/') {
        words = command(Path::new(&case.run[0]), &plain.work());
    }
    words.args(&case.run[1..]);
    let before = early(&plain, run_as_user(words))?;
    let after = early(advised, printed_command(printed, advised))?;
    let promised = finding.evidence.get("pending_bytes").copied().unwrap_or(0.0);
    let kept = after - before >= promised / FACTOR;
    Ok((!kept)
        .then(|| format!("{before} bytes were early without it and {after} with it, not {promised} more")))
}

/// Compares the calls with and without the printed command. The process that weir supervises cannot be traced as well, so
/// the kernel's totals are compared.
fn gathered_failure(
    case: &LabelledCase,
    finding: &Finding,
    printed: &str,
    advised: &Workspace,
) -> Result<Option<String>, String> {
    let plain = Workspace::of_case(case)?;
    let words: Vec<String> =
        case.run.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
    let (before, after) = (calls(case, &words.join(" "), &plain)?, calls(case, printed, advised)?);
    let promised = finding.gain.map_or(0, |gain| gain.calls) as f64;
    let kept = before - after >= promised / FACTOR;
    Ok((!kept).then(|| format!("{before} calls without it and {after} with it, not {promised} fewer")))
}

/// Runs a command line and returns the number of reads and writes of all its processes.
fn calls(case: &LabelledCase, line: &str, workspace: &Workspace) -> Result<f64, String> {
    let totals = workspace.beside("io");
    // The totals of a process include those of the children that it has waited for.
    let script = format!("{line}\nstatus=$?; cat /proc/$$/io > '{}'; exit $status", totals.display());
    let streams = streams(workspace, case);
    let exit = finish(printed_command(&script, workspace), &streams)?;
    if exit.status != case.exit {
        return Err(format!("{line}: status {}: {}", exit.status, super::start::last_errors(&streams)));
    }
    let text = fs::read_to_string(totals).map_err(|error| format!("{line}: {error}"))?;
    let number = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or(0.0)
    };
    Ok(number("syscr:") + number("syscw:"))
}
