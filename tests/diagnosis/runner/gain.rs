//! Compares predicted gains with measured ones: rounds of a traced run and of both programs without weir, close in time so
//! that other load affects all three. The medians of the rounds are compared.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use weir_diagnose::GainKind;
use weir_model::Finding;

use super::advice::{AdviceResult, printed_command};
use super::judge::{CaseResult, check_status, streams, trace};
use super::set::LabelledCase;
use super::start::finish;
use super::workspace::{Workspace, command, run_as_user};

/// A gain of this many seconds exceeds the noise of starting a program.
const MIN_GAIN_S: f64 = 0.15;
/// A smaller gain is judged if the spread of the rounds is at most a third of it.
const MIN_ALIKE_S: f64 = 0.03;

const ROUNDS: usize = 3;
/// The most rounds of a pair whose prediction and measurement disagree.
const MAX_ROUNDS: usize = 7;

/// A predicted and a measured gain, in seconds.
pub struct GainPair {
    pub predicted: f64,
    pub measured: f64,
    /// CPU time was measured, not elapsed time.
    pub cpu: bool,
    /// The spread of the measurements, without the outer quarters.
    pub spread: f64,
}

impl GainPair {
    /// Returns whether the gain is large enough to be judged.
    pub fn counts(&self) -> bool {
        self.measured >= MIN_GAIN_S || self.measured >= MIN_ALIKE_S.max(self.spread * 3.0)
    }

    /// Returns whether prediction and measurement are within a factor of 1.5.
    pub fn agrees(&self) -> bool {
        let ratio = self.predicted / self.measured;
        (1.0 / 1.5..=1.5).contains(&ratio)
    }
}

/// Returns the gain that the findings of a run promise together. For CPU time it includes the reader's part and the CPU time
/// of a busy loop, which are no elapsed time.
pub fn promised(case: &LabelledCase, findings: &[Finding]) -> f64 {
    let own = findings.iter().filter(|finding| finding.id == case.finding);
    let beside = if case.rule().gain == GainKind::SpinTime { "cost_s" } else { "peer_s" };
    let beside_s = |finding: &Finding| finding.evidence.get(beside).copied().filter(|_| is_cpu_time(case));
    own.map(|finding| finding.gain.map_or(0.0, |gain| gain.elapsed_s) + beside_s(finding).unwrap_or(0.0))
        .sum()
}

/// As [`promised`], for the printed `weir run` command.
fn promised_by_command(case: &LabelledCase, findings: &[Finding]) -> f64 {
    let of_command = |finding: &Finding| {
        let gain = finding.command_gain.or(finding.gain).filter(|_| finding.command.is_some());
        Finding { gain, ..finding.clone() }
    };
    promised(case, &findings.iter().map(of_command).collect::<Vec<_>>())
}

/// Returns whether the pair differs by CPU time. Waiting for a device, a terminal or another process is no CPU time.
fn is_cpu_time(case: &LabelledCase) -> bool {
    case.rule().gain != GainKind::WaitTime
}

/// Measures the pair of a case whose fault was found. weir keeps measured prices in `prices`.
pub fn measure(
    case: &LabelledCase,
    [broken, fixed]: [&Workspace; 2],
    prices: &TempDir,
    result: &mut CaseResult,
) -> Result<GainPair, String> {
    let (mut predicted, mut measured) = (Vec::new(), Vec::new());
    let (mut advised, mut promised_s) = (Vec::new(), Vec::new());
    let cpu = is_cpu_time(case);
    let mut command = None;
    loop {
        let (_, findings) = trace(broken, &case.run, &streams(broken, case), Some(prices))?;
        predicted.push(promised(case, &findings));
        promised_s.push(promised_by_command(case, &findings));
        let gathers = |finding: &&Finding| finding.id == case.finding && finding.command.is_some();
        command = command.or_else(|| findings.iter().find(gathers)?.command.clone());
        let slow = run_untraced(case, broken, &case.run, case.exit, result)?;
        let fast = run_untraced(case, fixed, &case.fixed, case.fixed_exit, result)?;
        measured.push(if cpu { slow.1 - fast.1 } else { slow.0 - fast.0 });
        if let Some(command) = &command {
            let gathered = timed(printed_command(command, broken), case, broken, case.exit, result)?;
            advised.push(if cpu { slow.1 - gathered.1 } else { slow.0 - gathered.0 });
        }
        let (predicted_s, measured_s) = (median(&predicted), median(&measured));
        let pair = GainPair { predicted: predicted_s, measured: measured_s, cpu, spread: spread(&measured) };
        let enough = measured.len() >= ROUNDS && (pair.agrees() || !pair.counts());
        if enough || measured.len() >= MAX_ROUNDS {
            if let Some(command) = command.filter(|_| pair.counts()) {
                note_advised(result, &command, median(&promised_s), median(&advised));
            }
            return Ok(pair);
        }
    }
}

/// Notes whether the printed command gains what the finding promises for it.
fn note_advised(result: &mut CaseResult, command: &str, promised_s: f64, gained_s: f64) {
    let too_small = promised_s.max(gained_s) < MIN_GAIN_S;
    let kept = too_small || (1.0 / 1.5..=1.5).contains(&(promised_s / gained_s));
    let failure = (!kept).then(|| format!("gains {gained_s:.2} s and not {promised_s:.2} s"));
    result.advice.push(AdviceResult { advice: format!("time of {command}"), failure });
}

/// Runs a program without weir and returns its elapsed and its CPU seconds.
fn run_untraced(
    case: &LabelledCase,
    workspace: &Workspace,
    run: &[String],
    expected: i32,
    result: &mut CaseResult,
) -> Result<(f64, f64), String> {
    let mut program = command(&workspace.work().join(&run[0]), &workspace.work());
    if !run[0].contains('/') {
        program = command(Path::new(&run[0]), &workspace.work());
    }
    program.args(&run[1..]);
    timed(run_as_user(program), case, workspace, expected, result)
}

fn timed(
    program: Command,
    case: &LabelledCase,
    workspace: &Workspace,
    expected: i32,
    result: &mut CaseResult,
) -> Result<(f64, f64), String> {
    let before = children_cpu_s();
    let exit = finish(program, &streams(workspace, case))?;
    let cpu = children_cpu_s() - before;
    check_status(&exit, expected, "without weir", result);
    Ok((exit.elapsed.as_secs_f64(), cpu))
}

/// Returns the CPU seconds of all ended children of this process and of theirs. No other test runs meanwhile.
fn children_cpu_s() -> f64 {
    // SAFETY: a struct of integers, for which all zeros are valid; getrusage fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn spread(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    let outermost = times.len() / 4;
    times[times.len() - 1 - outermost] - times[outermost]
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
