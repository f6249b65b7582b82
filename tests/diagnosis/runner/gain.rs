//! Predicted gains against measured ones: rounds of a traced run and of both programs without weir, side by side in
//! time, so that what else the machine does falls on all three; medians of what the rounds say.

use std::path::Path;

use tempfile::TempDir;
use weir_diagnose::GainKind;
use weir_model::Finding;

use super::judge::{Verdict, check_status, streams, trace};
use super::place::{Place, as_user, command};
use super::set::Case;
use super::start::finish;

/// A gain of this much stands out of the noise of starting a program …
const LEAST_GAIN_S: f64 = 0.15;
/// … and a smaller one where the rounds say the same: apart by no more than a third of it. Others are not judged.
const LEAST_ALIKE_S: f64 = 0.03;

const ROUNDS: usize = 3;
/// What rounds say that lie between 1/1.5 and 1.5 by less than the noise, or outside, is asked for more of them.
const MOST_ROUNDS: usize = 7;

/// Predicted against measured, in seconds.
pub struct GainPair {
    pub predicted: f64,
    pub measured: f64,
    /// Processor time was measured.
    pub processor: bool,
    /// How far apart the rounds' measurements are, without the outermost of many.
    pub apart: f64,
}

impl GainPair {
    /// Is it large enough to be judged?
    pub fn counts(&self) -> bool {
        self.measured >= LEAST_GAIN_S || self.measured >= LEAST_ALIKE_S.max(self.apart * 3.0)
    }

    /// Within a factor of 1.5, either way.
    pub fn agrees(&self) -> bool {
        let ratio = self.predicted / self.measured;
        (1.0 / 1.5..=1.5).contains(&ratio)
    }
}

/// What the findings of a run promise together; of processor time also what they say of the process at the other end,
/// and what a spin burns, which is no elapsed time.
pub fn promised(case: &Case, findings: &[Finding]) -> f64 {
    let own = findings.iter().filter(|finding| finding.id == case.finding);
    let beside = if case.rule().gain == GainKind::SpinTime { "cost_s" } else { "peer_s" };
    let beside_s = |finding: &Finding| finding.evidence.get(beside).copied().filter(|_| is_processor(case));
    own.map(|finding| finding.gain.map_or(0.0, |gain| gain.elapsed_s) + beside_s(finding).unwrap_or(0.0))
        .sum()
}

/// Whether the pair differs by processor time. Waiting for a device, a terminal or another process is none.
fn is_processor(case: &Case) -> bool {
    case.rule().gain != GainKind::WaitTime
}

/// The pair of a case whose fault was found; `prices` is where weir keeps what it measured.
pub fn measure(
    case: &Case,
    [broken, fixed]: [&Place; 2],
    prices: &TempDir,
    verdict: &mut Verdict,
) -> Result<GainPair, String> {
    let (mut predicted, mut measured) = (Vec::new(), Vec::new());
    let processor = is_processor(case);
    loop {
        let (_, findings) = trace(broken, &case.run, &streams(broken, case), Some(prices))?;
        predicted.push(promised(case, &findings));
        let slow = bare(case, broken, &case.run, case.exit, verdict)?;
        let fast = bare(case, fixed, &case.fixed, case.fixed_exit, verdict)?;
        measured.push(if processor { slow.1 - fast.1 } else { slow.0 - fast.0 });
        let (predicted_s, measured_s) = (median(&predicted), median(&measured));
        let pair =
            GainPair { predicted: predicted_s, measured: measured_s, processor, apart: apart(&measured) };
        let enough = measured.len() >= ROUNDS && (pair.agrees() || !pair.counts());
        if enough || measured.len() >= MOST_ROUNDS {
            return Ok(pair);
        }
    }
}

/// A run without weir: what it took, elapsed and of the processor, in seconds.
fn bare(
    case: &Case,
    place: &Place,
    run: &[String],
    expected: i32,
    verdict: &mut Verdict,
) -> Result<(f64, f64), String> {
    let mut program = command(&place.work().join(&run[0]), &place.work());
    if !run[0].contains('/') {
        program = command(Path::new(&run[0]), &place.work());
    }
    program.args(&run[1..]);
    let program = as_user(program);
    let before = processor_s();
    let ended = finish(program, &streams(place, case))?;
    let processor = processor_s() - before;
    check_status(&ended, expected, "without weir", verdict);
    Ok((ended.elapsed.as_secs_f64(), processor))
}

/// Seconds that the children of this process, and theirs, had the processor: nobody else starts any meanwhile.
fn processor_s() -> f64 {
    // SAFETY: a struct of integers, for which all zeros are valid; getrusage fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn apart(times: &[f64]) -> f64 {
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
