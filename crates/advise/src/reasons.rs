//! Sentences: why a policy loses to the first, and what a policy does not do.

use weir_model::advise::{AdviceQuestion, PredictedCost, SyncPoint, WriteMethod};
use weir_model::duration::{format_seconds, percent, three_digits};
use weir_model::number::about_bytes;
use weir_model::{Mode, Size};

use crate::rank::{Judged, NEGLIGIBLE_PERCENT, TIE, complexity, deciding_percent};
use crate::write_policy::WritePolicy;

/// Returns why `one` loses to the first choice.
pub fn why_not(one: &Judged, first: &Judged, question: &AdviceQuestion) -> String {
    if let Some(problem) = &one.problem {
        return problem.text.clone();
    }
    let (Some(own), Some(best)) = (one.predicted, first.predicted) else {
        return "its price is unknown".into();
    };
    let mut reasons: Vec<String> =
        [cost(&own, &best), flash(&own, &best, question)].into_iter().flatten().collect();
    reasons.extend(risk("a kill", own.at_risk_kill_bytes, best.at_risk_kill_bytes));
    reasons.extend(risk("a power cut", own.at_risk_power_bytes, best.at_risk_power_bytes));
    if one.policy.is_for_experts() {
        reasons.push(expert(&one.policy).into());
    }
    if complexity(&one.policy) > complexity(&first.policy) {
        reasons.extend(effort(&one.policy, &first.policy));
    }
    if own.latency_s > best.latency_s * 2.0 && own.latency_s > 0.001 {
        reasons.push(format!("a record is visible after {}", format_seconds(own.latency_s)));
    }
    if reasons.is_empty() {
        reasons.push("as good as the first, within the noise".into());
    }
    gain(&own, &best).into_iter().chain(reasons).collect::<Vec<_>>().join("; ")
}

fn cost(own: &PredictedCost, best: &PredictedCost) -> Option<String> {
    let (own, best) = (deciding_percent(own), deciding_percent(best));
    (own > best * TIE).then(|| {
        let times = three_digits(own / best);
        format!("costs {times} times as much: {} of the time instead of {}", percent(own), percent(best))
    })
}

/// Returns what the policy saves, and whether that matters.
fn gain(own: &PredictedCost, best: &PredictedCost) -> Option<String> {
    (own.busy_percent * TIE < best.busy_percent).then(|| {
        let (less, more) = (percent(own.busy_percent), percent(best.busy_percent));
        match best.busy_percent <= NEGLIGIBLE_PERCENT {
            true => format!("slightly cheaper: {less} instead of {more} of the time; both are negligible"),
            false => format!("cheaper: {less} instead of {more} of the time"),
        }
    })
}

fn flash(own: &PredictedCost, best: &PredictedCost, question: &AdviceQuestion) -> Option<String> {
    let (own, best) = (own.flash_bytes_per_day?, best.flash_bytes_per_day?);
    (question.medium.is_small_flash() && own > best * TIE)
        .then(|| format!("programs {} of flash a day instead of {}", about_bytes(own), about_bytes(best)))
}

fn risk(event: &str, own: u64, best: u64) -> Option<String> {
    let (own, best) = (shown(own), (own > best).then(|| shown(best))?);
    (own != best).then(|| format!("{event} loses up to {own} instead of {best}"))
}

/// Formats bytes at risk: the size of a buffer exactly, others as an estimate.
fn shown(bytes: u64) -> String {
    if bytes.is_power_of_two() { Size(bytes).to_string() } else { about_bytes(bytes as f64) }
}

fn effort(own: &WritePolicy, first: &WritePolicy) -> Option<String> {
    let library = own.method == WriteMethod::Libweir && first.method != WriteMethod::Libweir;
    let thread = |policy: &WritePolicy| policy.method != WriteMethod::Libweir && policy.timer_s().is_some();
    match (library, thread(own) && !thread(first)) {
        (true, _) => Some("needs libweir".into()),
        (_, true) => Some("needs a timer thread".into()),
        _ if own.sync == SyncPoint::Record && first.sync != SyncPoint::Record => {
            Some("two calls for each record".into())
        }
        _ if own.mode == Mode::Line && first.mode == Mode::None => {
            Some("copies each record once more and saves no call".into())
        }
        _ => None,
    }
}

fn expert(policy: &WritePolicy) -> &'static str {
    match policy.method {
        WriteMethod::Mmap => {
            "a full disk is SIGBUS instead of an error, and the file ends with NULs until it is truncated"
        }
        WriteMethod::Direct => "needs aligned blocks, and a last block that is padded and truncated",
        WriteMethod::IoUring => {
            "errors arrive later than the call, and seccomp filters of containers often forbid it"
        }
        _ => "",
    }
}

/// Returns what the policy does not do, in sentences.
pub fn caveats(policy: &WritePolicy, question: &AdviceQuestion) -> Vec<String> {
    let mut caveats = Vec::new();
    if policy.gathers() && policy.flush_period_s.is_none() {
        caveats.push(
            "If the records pause, the last ones stay in the buffer until the next come or the file is closed.".into(),
        );
    }
    match policy.sync {
        SyncPoint::None => {}
        SyncPoint::Record | SyncPoint::ODsync | SyncPoint::Group => {
            caveats.push("A sync that failed once is final: the kernel may have dropped the bytes, so stop or start a new file.".into());
        }
        SyncPoint::Period => {
            caveats.push("A sync that failed once is final; the next call returns the error.".into());
        }
    }
    if policy.sync == SyncPoint::Group {
        caveats.push(
            "Threads of one process share the sync. For processes: weir log --listen unix:SOCKET --sync record --ack."
                .into(),
        );
    }
    if policy.sync != SyncPoint::None {
        caveats.push(
            "The promise ends at the device: a device that loses its own cache at a power cut breaks it."
                .into(),
        );
    }
    if policy.method == WriteMethod::Stdio && policy.mode == Mode::Line && question.sharers > 1 {
        caveats.push("A line that is longer than the buffer is written in pieces.".into());
    }
    caveats
}

#[cfg(test)]
mod tests {
    use weir_model::advise::{AdviceQuestion, AllowedLoss};

    use crate::advise;
    use crate::fixture::{host, prices, question};

    #[test]
    fn every_way_that_loses_has_a_reason() {
        for loss in AllowedLoss::ALL {
            for (rate, sharers) in [(0.1, 1), (100.0, 3), (1e6, 1)] {
                let asked = AdviceQuestion { loss: *loss, rate, sharers, ..question() };
                let document = advise(&asked, &host(), &prices(), None);
                let reasons = document.others.iter().map(|other| &other.why_not);
                for reason in
                    reasons.chain(document.choices.iter().skip(1).filter_map(|one| one.why_not.as_ref()))
                {
                    assert!(reason.len() > 10 && !reason.contains("NaN"), "{asked:?}: {reason}");
                }
            }
        }
    }

    #[test]
    fn a_reason_names_both_prices() {
        let bulk = AdviceQuestion { rate: 1e5, latency_s: 60.0, ..question() };
        let document = advise(&bulk, &host(), &prices(), None);
        let each = document.others.iter().find(|other| other.name == "write each record");
        let reason = each
            .map(|other| other.why_not.clone())
            .or_else(|| document.choices.iter().find(|one| one.name == "write each record")?.why_not.clone());
        let reason = reason.unwrap();
        assert!(reason.contains("times as much") && reason.contains('%'), "{reason}");
    }
}
