//! Runs both versions of an experiment and compares the values that their check observes with the stated ones.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use weir_model::lab::{LabOutcome, LabVerdict, ProgramVersion, PublishedTable};
use weir_model::trace::Recording;
use weir_sys::command::find;

use crate::judge::{CheckedValue, judge};
use crate::stage::Stage;
use crate::{Error, Experiment, published};

/// The options of a run.
#[derive(Debug)]
pub struct LabOptions<'a> {
    /// The weir executable that the checks use.
    pub weir: PathBuf,
    /// Use the experiment's small sizes.
    pub quick: bool,
    /// The run stops soon after this flag is set.
    pub stop: &'a AtomicBool,
}

/// The results of one program version.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct VersionRun {
    pub version: ProgramVersion,
    /// Observed values, compared with the stated ones, and those without a statement.
    pub outcomes: Vec<LabOutcome>,
    /// The lines with which the check drew the run; empty for most experiments.
    pub picture: Vec<String>,
    /// The exit status and last error line of the check, if it failed.
    pub failure: Option<String>,
    /// The JSON documents that the check wrote, by file name without extension.
    pub results: Vec<(String, Value)>,
    /// Figures of published tables that the check measured.
    pub(crate) ours: Vec<published::MeasuredFigure>,
}

/// A run of an experiment, or the reason why it could not run.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct ExperimentRun {
    /// The verdict for both versions together.
    pub verdict: LabVerdict,
    /// The results of each version.
    pub ran: Vec<VersionRun>,
    /// Published tables, each figure with the one measured here.
    pub tables: Vec<PublishedTable>,
    /// The compiler commands of the programs.
    pub commands: Vec<String>,
    pub elapsed: Duration,
}

/// Runs both versions of an experiment. Fails if the experiment itself is broken or the run is stopped.
pub fn run(experiment: &Experiment, options: &LabOptions) -> Result<ExperimentRun, Error> {
    let start = Instant::now();
    if let Some(reason) = absent(experiment) {
        let verdict = LabVerdict::Absent(reason);
        let (ran, tables, commands) = (Vec::new(), Vec::new(), Vec::new());
        return Ok(ExperimentRun { verdict, ran, tables, commands, elapsed: start.elapsed() });
    }
    let stage = Stage::new(experiment)?;
    let mut ran = Vec::new();
    for version in [ProgramVersion::Broken, ProgramVersion::Fixed] {
        if experiment.has(version) {
            ran.push(run_version(experiment, &stage, version, options)?);
        }
    }
    let tables = published::tables(experiment, &ran)?;
    let commands = stage.commands.clone();
    Ok(ExperimentRun { verdict: verdict(&ran), ran, tables, commands, elapsed: start.elapsed() })
}

/// Returns why the experiment cannot run on this machine, if so.
fn absent(experiment: &Experiment) -> Option<String> {
    if experiment.root && !rustix::process::geteuid().is_root() {
        return Some(format!("needs root: sudo weir lab {}", experiment.name));
    }
    if let Some(device) = experiment.device.as_ref().filter(|device| !Path::new(device).exists()) {
        return Some(format!("this machine has no {device}"));
    }
    let missing: Vec<_> =
        experiment.needs.iter().filter(|command| find(command).is_none()).cloned().collect();
    (!missing.is_empty()).then(|| format!("not installed here: {}", missing.join(", ")))
}

fn verdict(ran: &[VersionRun]) -> LabVerdict {
    let wrong = ran.iter().find_map(|one| {
        let differs = one.outcomes.iter().find(|outcome| !outcome.agrees);
        let text = |outcome: &LabOutcome| {
            format!("{}, {}: {} (stated: {})", one.version.name(), outcome.what, outcome.seen, outcome.stated)
        };
        one.failure.clone().or_else(|| differs.map(text))
    });
    wrong.map_or(LabVerdict::Agrees, LabVerdict::Differs)
}

fn run_version(
    experiment: &Experiment,
    stage: &Stage,
    version: ProgramVersion,
    options: &LabOptions,
) -> Result<VersionRun, Error> {
    let (directory, program) = stage.run_directory(version)?;
    let output = check(experiment, stage, &directory, &program, version, options)?;
    let ours: Vec<_> = output.lines.iter().filter_map(|line| published::parse_figure(line)).collect();
    let others = output.lines.iter().filter(|line| !line.starts_with("ours\t"));
    let mut values: Vec<CheckedValue> = others.filter_map(|line| parse_value(line)).collect();
    let results = results(&directory);
    values.extend(traced_finding(experiment, &results));
    let mut outcomes = judge(experiment, version, &values);
    outcomes.extend(judge_finding(experiment, version, &values, &results));
    outcomes.extend(unstated(experiment, version, &values));
    let picture = values.into_iter().filter(|one| one.what == PICTURE).map(|one| one.value);
    Ok(VersionRun { version, picture: picture.collect(), outcomes, failure: output.failure, results, ours })
}

/// The name under which a check reports the lines of its drawing.
const PICTURE: &str = "picture";

/// Returns the values that the check reports besides the outcomes of lab.toml: measured figures, which are shown and not judged.
fn unstated(experiment: &Experiment, version: ProgramVersion, values: &[CheckedValue]) -> Vec<LabOutcome> {
    let has_statement = |what: &str| experiment.outcome.iter().any(|outcome| outcome.what == what);
    let others = values.iter().filter(|one| one.what != PICTURE && !one.what.starts_with(BY_TRACE));
    let outcome = |one: &CheckedValue| LabOutcome {
        version,
        what: one.what.clone(),
        expected: String::new(),
        stated: "*".into(),
        seen: one.value.clone(),
        agrees: true,
        as_expected: true,
    };
    others.filter(|one| !has_statement(&one.what)).map(outcome).collect()
}

/// Returns the name of the outcome that tells whether `weir trace` has a finding.
fn by_trace(finding: &str) -> String {
    format!("{BY_TRACE}{finding}")
}

const BY_TRACE: &str = "weir trace: ";
const FOUND: &str = "found";
const NOT_FOUND: &str = "not found";

/// Checks whether the version's traces contain the experiment's finding. None if nothing was traced.
fn traced_finding(experiment: &Experiment, results: &[(String, Value)]) -> Option<CheckedValue> {
    let wanted = experiment.finding.as_deref()?;
    let traces: Vec<_> = results.iter().filter(|one| one.1["schema"] == "weir-trace/1").collect();
    let all = traces.iter().flat_map(|one| one.1["findings"].as_array().into_iter().flatten());
    let value = match all.into_iter().any(|finding| finding["id"] == wanted) {
        _ if traces.is_empty() => return None,
        true => FOUND.into(),
        false => NOT_FOUND.into(),
    };
    Some(CheckedValue { what: by_trace(wanted), value })
}

fn judge_finding(
    experiment: &Experiment,
    version: ProgramVersion,
    values: &[CheckedValue],
    results: &[(String, Value)],
) -> Option<LabOutcome> {
    let wanted = experiment.finding.as_deref()?;
    let stated = match version {
        ProgramVersion::Broken => FOUND.to_string(),
        ProgramVersion::Fixed => NOT_FOUND.to_string(),
    };
    let what = by_trace(wanted);
    let found = values.iter().find(|one| one.what == what);
    let value = found.map_or_else(|| "was not run".into(), |one| one.value.clone());
    let by = experiment.finding_engine.as_deref();
    let other = by.filter(|by| !results.iter().any(|one| one.1["engine"] == **by));
    let (value, agrees) = match other.filter(|_| found.is_some() && value != stated) {
        Some(engine) => (format!("{value}: not judged without {engine}"), true),
        None => (value.clone(), value == stated),
    };
    Some(LabOutcome {
        version,
        what,
        expected: String::new(),
        stated,
        seen: value,
        agrees,
        as_expected: true,
    })
}

/// Parses a line `WHAT<TAB>VALUE` of a check.
fn parse_value(line: &str) -> Option<CheckedValue> {
    let (what, value) = line.split_once('\t')?;
    Some(CheckedValue { what: what.trim().into(), value: value.trim_end().into() })
}

/// Reads the JSON documents that weir wrote in the version's directory.
fn results(directory: &Path) -> Vec<(String, Value)> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut found: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .filter_map(|path| {
            let value: Value = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
            value["schema"].as_str()?.starts_with("weir-").then_some(())?;
            Some((path.file_stem()?.to_string_lossy().into_owned(), value))
        })
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

struct CheckOutput {
    lines: Vec<String>,
    failure: Option<String>,
}

/// Runs check.sh for one version until it ends or reaches its time limit.
fn check(
    experiment: &Experiment,
    stage: &Stage,
    directory: &Path,
    program: &Path,
    version: ProgramVersion,
    options: &LabOptions,
) -> Result<CheckOutput, Error> {
    let (out, errors) = (stage.path().join("values"), stage.path().join("errors"));
    let failed = |path: &Path, source| Error::File { path: path.into(), call: "open", source };
    let mut command = prepared(shell(experiment), directory, program, version, options);
    command
        .args(["-euc", ". ../functions.sh; . ../check.sh"])
        .stdout(File::create(&out).map_err(|source| failed(&out, source))?)
        .stderr(File::create(&errors).map_err(|source| failed(&errors, source))?);
    let child = command.spawn().map_err(|source| failed(Path::new("sh"), source))?;
    let limit = Duration::from_secs(experiment.limit_s);
    let status = finish(child, limit, options.stop)?;
    let text = |path: &Path| read(path).unwrap_or_default();
    let failure = match status {
        Some(status) if status.success() => None,
        Some(status) => {
            Some(format!("its check ended with {}: {}", ended(status), last_line(&text(&errors))))
        }
        None => Some(format!("still running after {limit:?}: {}", last_line(&text(&errors)))),
    };
    Ok(CheckOutput { lines: text(&out).lines().map(String::from).collect(), failure })
}

/// Returns a shell command. For an experiment that needs root, the shell has its own mount namespace, so that its mounts
/// end with it, even after SIGKILL.
fn shell(experiment: &Experiment) -> Command {
    let private = ["--mount", "--propagation", "private"];
    let works = || Command::new("unshare").args(private).arg("true").output();
    if experiment.root && works().is_ok_and(|output| output.status.success()) {
        let mut command = Command::new("unshare");
        command.args(private).arg("sh");
        return command;
    }
    Command::new("sh")
}

/// Time limit for a check to clean up after SIGTERM.
const CLEANUP_LIMIT: Duration = Duration::from_secs(2);

/// Sets the working directory and the environment variables that check.sh may use.
fn prepared(
    mut command: Command,
    directory: &Path,
    program: &Path,
    version: ProgramVersion,
    options: &LabOptions,
) -> Command {
    command
        .current_dir(directory)
        .env("PROGRAM", program)
        .env("VERSION", version.name())
        .env("WEIR", &options.weir)
        .env("QUICK", if options.quick { "1" } else { "" })
        // Temporary files that a killed compiler or runtime leaves are removed with the experiment's directory.
        .env("TMPDIR", directory.parent().unwrap_or(directory))
        .env_remove("PYTHONUNBUFFERED")
        .stdin(Stdio::null())
        .process_group(0);
    command
}

/// Runs one version under `weir trace` with every call recorded and returns the recording.
pub fn record(
    experiment: &Experiment,
    version: ProgramVersion,
    options: &LabOptions,
) -> Result<Recording, Error> {
    let broken = |why: String| Error::Broken { name: experiment.name.clone(), why };
    if let Some(reason) = absent(experiment) {
        return Err(broken(reason));
    }
    let stage = Stage::new(experiment)?;
    let (directory, program) = stage.run_directory(version)?;
    if experiment.step.is_none() && !program.is_file() {
        return Err(broken(format!("has no {} program for --step", version.name())));
    }
    let line = experiment.step.as_deref().unwrap_or("\"$PROGRAM\" >file");
    let (recorded, errors) = (stage.path().join("recorded"), stage.path().join("errors"));
    let failed = |path: &Path, call, source| Error::File { path: path.into(), call, source };
    let mut command = prepared(Command::new(&options.weir), &directory, &program, version, options);
    command
        .args(["trace", "--quiet", "--engine", "ptrace", "--exact", "--every-call", "--record"])
        .arg(&recorded)
        .args(["--", "sh", "-c", line])
        .stdout(Stdio::null())
        .stderr(File::create(&errors).map_err(|source| failed(&errors, "open", source))?);
    let child = command.spawn().map_err(|source| failed(&options.weir, "execve", source))?;
    let limit = Duration::from_secs(experiment.limit_s);
    finish(child, limit, options.stop)?.ok_or_else(|| broken(format!("still running after {limit:?}")))?;
    let last_error = || last_line(&read(&errors).unwrap_or_default()).to_string();
    let text = fs::read(&recorded).map_err(|_| broken(format!("not recorded: {}", last_error())))?;
    serde_json::from_slice(&text).map_err(|error| broken(format!("its recording: {error}; {}", last_error())))
}

/// Waits for the child, then kills the rest of its process group. Returns None after the time limit.
fn finish(mut child: Child, limit: Duration, stop: &AtomicBool) -> Result<Option<ExitStatus>, Error> {
    let group = Pid::from_child(&child);
    let status = wait(&mut child, limit, &|| stop.load(Ordering::Relaxed));
    if status.is_none() {
        let _asked = kill_process_group(group, Signal::TERM);
        wait(&mut child, CLEANUP_LIMIT, &|| false);
    }
    let _none_left = kill_process_group(group, Signal::KILL);
    let _gone = child.wait();
    if stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(status) }
}

/// Waits for the child to end. Returns None after the time limit, or when `enough` returns true.
fn wait(child: &mut Child, limit: Duration, enough: &dyn Fn() -> bool) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        let status = child.try_wait().unwrap_or(None);
        if status.is_some() || start.elapsed() >= limit || enough() {
            return status;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn ended(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => format!("status {}", status.code().unwrap_or(-1)),
    }
}

fn last_line(text: &str) -> &str {
    text.trim_end().lines().last().unwrap_or("no error message")
}
