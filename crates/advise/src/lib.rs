//! Turns a question about writing into choices with their prices: the engine of `weir advise`.
//!
//! This crate is pure: the prices of the machine come in as values. [`write_policies`](write_policy::write_policies) lists the policies,
//! [`predict`] prices each, [`limits`] rejects those that break a limit of the question, [`rank`] orders the rest.

pub mod code;
mod limits;
mod notes;
mod predict;
mod rank;
mod reasons;
mod sized;
mod syncs;
mod traced;
mod write_policy;

#[cfg(test)]
mod fixture;

use weir_model::advise::{
    AdviceDocument, AdviceHost, AdvicePrices, AdviceQuestion, Choice, OtherWay, SCHEMA, TracedProgram,
    WriteMethod,
};

use rank::Judged;

pub use notes::MEDIUM_DIFFERS;
pub use predict::predict;
pub use rank::NEGLIGIBLE_PERCENT;
pub use traced::{TracedQuestion, traced_question};
pub use write_policy::WritePolicy;

/// Answers a question from the prices of this machine.
pub fn advise(
    question: &AdviceQuestion,
    host: &AdviceHost,
    prices: &AdvicePrices,
    traced: Option<TracedProgram>,
) -> AdviceDocument {
    let judged = write_policy::write_policies(question)
        .into_iter()
        .map(|policy| {
            let predicted = predict(&policy, question, host, prices);
            let problem = limits::problem(&policy, question, predicted.as_ref());
            Judged { policy, predicted, problem }
        })
        .collect();
    let (best, rest) = rank::order(judged, question);
    let choices = best.iter().enumerate().map(|(at, one)| choice(at, one, &best[0], question)).collect();
    let others = rest.iter().map(|one| other(one, &best[0], question)).collect();
    AdviceDocument {
        schema: SCHEMA.into(),
        question: question.clone(),
        host: host.clone(),
        prices: prices.clone(),
        assumptions: notes::assumptions(question, host, prices),
        choices,
        others,
        notes: notes::notes(question, prices, &best[0]),
        traced,
    }
}

/// Returns the best policy of a document that uses `method`, and the reason if it breaks a limit. None if the document has no such
/// policy.
pub fn best_policy(document: &AdviceDocument, method: WriteMethod) -> Option<(WritePolicy, Option<&str>)> {
    let choices =
        document.choices.iter().map(|one| (one.method, &one.name, one.holds, one.why_not.as_deref()));
    let others =
        document.others.iter().map(|one| (one.method, &one.name, one.holds, Some(one.why_not.as_str())));
    let (_, name, holds, why_not) = choices.chain(others).find(|(one, ..)| *one == method)?;
    let policy =
        write_policy::write_policies(&document.question).into_iter().find(|policy| policy.name() == *name)?;
    Some((policy, why_not.filter(|_| !holds)))
}

fn broken_limit(one: &Judged) -> Option<&str> {
    one.problem.as_ref().map(|problem| problem.text.as_str())
}

fn choice(at: usize, one: &Judged, first: &Judged, question: &AdviceQuestion) -> Choice {
    let policy = &one.policy;
    let zero = weir_model::advise::PredictedCost {
        calls_per_s: 0.0,
        cpu_percent: 0.0,
        busy_percent: 0.0,
        record_ns: 0.0,
        record_ns_range: None,
        max_rate: 0.0,
        latency_s: 0.0,
        at_risk_kill_bytes: 0,
        at_risk_power_bytes: 0,
        flash_bytes_per_day: None,
    };
    Choice {
        name: policy.name(),
        method: policy.method,
        mode: policy.mode,
        buffer_bytes: policy.buffer_bytes,
        sync: policy.sync,
        flush_period_s: policy.flush_period_s,
        sync_period_s: policy.sync_period_s,
        holds: one.problem.is_none(),
        predicted: one.predicted.unwrap_or(zero),
        why_not: match at {
            0 => one.problem.as_ref().map(|problem| problem.text.clone()),
            _ => Some(reasons::why_not(one, first, question)),
        },
        caveats: reasons::caveats(policy, question),
        code: code::programs(policy, question, broken_limit(one)),
    }
}

fn other(one: &Judged, first: &Judged, question: &AdviceQuestion) -> OtherWay {
    OtherWay {
        name: one.policy.name(),
        method: one.policy.method,
        holds: one.problem.is_none(),
        predicted: one.predicted,
        why_not: reasons::why_not(one, first, question),
        // The programs of other policies differ from those of the choices in a value or a line.
        code: match one.policy.is_for_experts() {
            true => code::programs(&one.policy, question, broken_limit(one)),
            false => Default::default(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{host, prices, question};

    #[test]
    fn each_method_has_a_best_policy_with_its_code() {
        let document = advise(&question(), &host(), &prices(), None);
        for method in WriteMethod::ALL {
            let (policy, _) = best_policy(&document, *method).unwrap_or_else(|| panic!("{method:?}"));
            assert_eq!(policy.method, *method);
            let other = document.others.iter().find(|other| other.name == policy.name());
            let code = other.filter(|_| policy.is_for_experts()).map(|other| &other.code);
            assert_eq!(
                policy.is_for_experts(),
                code.is_some_and(|code| code.contains_key("c")),
                "{method:?}"
            );
        }
    }
}
