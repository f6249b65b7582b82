//! The limits of a question, and the reasons why a policy breaks one.

use weir_model::Mode;
use weir_model::advise::{AdviceLanguage, AdviceQuestion, AllowedLoss, Medium, PredictedCost, WriteMethod};
use weir_model::duration::{format_seconds, percent};
use weir_model::number::{about, about_bytes};

use crate::write_policy::WritePolicy;

/// Share of the time above which a policy cannot keep up: the rest is for the program itself.
const FULL_SHARE: f64 = 95.0;
/// Relative error of a predicted time that does not break a limit.
const TOLERANCE: f64 = 1.001;

/// A reason why a policy is not chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// A clause for the screen.
    pub text: String,
    /// Whether the policy could be used if the limit were wider.
    pub is_limit: bool,
    /// Whether the policy loses more bytes than the question allows.
    pub loses_more: bool,
}

/// Returns why the policy cannot be used, or the first limit that it breaks. `None` if it holds all.
pub fn problem(
    policy: &WritePolicy,
    question: &AdviceQuestion,
    predicted: Option<&PredictedCost>,
) -> Option<Problem> {
    if let Some(text) = impossible(policy, question) {
        return Some(Problem { text, is_limit: false, loses_more: false });
    }
    let Some(predicted) = predicted else {
        let text = "its price could not be measured in this directory".into();
        return Some(Problem { text, is_limit: false, loses_more: false });
    };
    let lost = kill(question, predicted).or_else(|| power(question, predicted));
    let loses_more = lost.is_some();
    let text = rate(question, predicted).or_else(|| latency(question, predicted)).or(lost)?;
    Some(Problem { text, is_limit: true, loses_more })
}

/// Returns why the policy does not apply to this question at all.
fn impossible(policy: &WritePolicy, question: &AdviceQuestion) -> Option<String> {
    match policy.method {
        WriteMethod::InKernel => Some(
            "the program makes the records; this copies what is in a file or a pipe already (weir copy)"
                .into(),
        ),
        WriteMethod::Libweir if question.lang == AdviceLanguage::Rust => {
            Some("libweir is a C library; weir advise has no program with its Rust bindings".into())
        }
        WriteMethod::Libweir if !question.lang.has_libweir() => {
            Some(format!("libweir is a C library; the program is in {}", question.lang.text()))
        }
        WriteMethod::Mmap if question.sharers > 1 => {
            Some("several writers cannot append to one file through mappings".into())
        }
        WriteMethod::Direct | WriteMethod::IoUring if question.sharers > 1 => {
            Some("each writer would need its own blocks, and a block divides records of the others".into())
        }
        WriteMethod::Direct if question.medium == Medium::Ram => {
            Some("the file is in memory; there is no device to write to directly".into())
        }
        WriteMethod::Stdio if policy.mode == Mode::Line && question.record_bytes > policy.buffer_bytes => {
            Some("the line does not fit the buffer, so that it is written in pieces".into())
        }
        _ => None,
    }
}

fn rate(question: &AdviceQuestion, predicted: &PredictedCost) -> Option<String> {
    let asked = about(question.rate.round() as u64);
    if question.rate > predicted.max_rate * TOLERANCE {
        let most = about(predicted.max_rate.round() as u64);
        return Some(format!("it does {most} records a second here; the question has {asked}"));
    }
    (predicted.busy_percent > FULL_SHARE).then(|| {
        let busy = percent(predicted.busy_percent);
        format!(
            "{asked} records a second take {busy} of the time here, which leaves too little for the program"
        )
    })
}

fn latency(question: &AdviceQuestion, predicted: &PredictedCost) -> Option<String> {
    (predicted.latency_s > question.latency_s * TOLERANCE).then(|| {
        format!(
            "a record waits up to {}; the limit is {}",
            format_seconds(predicted.latency_s),
            format_seconds(question.latency_s)
        )
    })
}

/// Returns the bytes that may be lost; `None` for any number.
fn allowed_bytes(question: &AdviceQuestion) -> Option<u64> {
    match question.loss {
        AllowedLoss::None => Some(0),
        // A second that begins with a record has one record, however slow they come.
        AllowedLoss::Second => Some(question.bytes_per_s().ceil().max(question.record_bytes as f64) as u64),
        AllowedLoss::Buffer => None,
    }
}

fn kill(question: &AdviceQuestion, predicted: &PredictedCost) -> Option<String> {
    let bytes = predicted.at_risk_kill_bytes;
    (allowed_bytes(question)? < bytes).then(|| format!("a kill loses up to {}", lost(question, bytes)))
}

fn power(question: &AdviceQuestion, predicted: &PredictedCost) -> Option<String> {
    let bytes = predicted.at_risk_power_bytes;
    if question.medium == Medium::Ram && question.loss != AllowedLoss::Buffer {
        return Some("a power cut loses all that is in memory; use a directory on a device".into());
    }
    (allowed_bytes(question)? < bytes).then(|| format!("a power cut loses up to {}", lost(question, bytes)))
}

/// Formats lost bytes with the time in which they arrive.
fn lost(question: &AdviceQuestion, bytes: u64) -> String {
    format!(
        "{}, the records of {}",
        about_bytes(bytes as f64),
        format_seconds(bytes as f64 / question.bytes_per_s())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{host, prices, question};
    use crate::predict;
    use crate::write_policy::write_policies;

    fn of(question: &AdviceQuestion, name: &str) -> Option<String> {
        let policy = write_policies(question).into_iter().find(|policy| policy.name() == name);
        let policy = policy.unwrap_or_else(|| panic!("no way is called {name}"));
        let predicted = predict(&policy, question, &host(), &prices());
        problem(&policy, question, predicted.as_ref()).map(|problem| problem.text)
    }

    #[test]
    fn a_buffer_that_fills_slowly_breaks_the_latency() {
        let slow = AdviceQuestion { rate: 10.0, record_bytes: 80, latency_s: 1.0, ..question() };
        let text = of(&slow, "buffer of 4 KiB").unwrap();
        assert!(text.starts_with("a record waits up to 5.1") && text.contains("limit is 1.00 s"), "{text}");
        assert_eq!(of(&slow, "buffer of 4 KiB, flushed every 800 ms"), None);
    }

    #[test]
    fn a_loss_that_is_not_allowed_is_named() {
        let safe = AdviceQuestion { loss: AllowedLoss::None, rate: 50.0, ..question() };
        assert!(of(&safe, "write each record").unwrap().starts_with("a power cut loses up to "));
        assert_eq!(of(&safe, "write each record, fdatasync after each"), None);
        let second = AdviceQuestion { loss: AllowedLoss::Second, rate: 0.2, ..question() };
        assert_eq!(of(&second, "write each record, fdatasync every 900 ms"), None, "one record");
        let memory = AdviceQuestion { medium: Medium::Ram, ..second };
        assert!(of(&memory, "write each record, fdatasync after each").unwrap().contains("memory"));
    }

    #[test]
    fn a_device_has_a_highest_rate() {
        let fast = AdviceQuestion { rate: 10_000.0, loss: AllowedLoss::None, ..question() };
        let text = of(&fast, "write each record, fdatasync after each").unwrap();
        assert_eq!(text, "it does about 1,670 records a second here; the question has about 10,000");
    }

    #[test]
    fn a_rate_that_is_just_possible_leaves_no_time_for_the_program() {
        let just = AdviceQuestion { rate: 1600.0, loss: AllowedLoss::None, ..question() };
        let text = of(&just, "write each record, fdatasync after each").unwrap();
        assert!(text.starts_with("about 1,600 records a second take 9"), "{text}");
        assert!(text.ends_with(" of the time here, which leaves too little for the program"), "{text}");
    }

    #[test]
    fn a_rate_above_that_of_the_device_breaks_a_limit() {
        // 800 MB a second; the device of the fixture takes 500 MB.
        let bulk = AdviceQuestion { record_bytes: 65_536, rate: 12_208.0, latency_s: 60.0, ..question() };
        let text = of(&bulk, "write each record").unwrap();
        assert_eq!(text, "it does about 7,630 records a second here; the question has about 12,200");
        let half = AdviceQuestion { rate: 6000.0, ..bulk };
        assert_eq!(of(&half, "write each record"), None);
    }

    #[test]
    fn some_ways_do_not_apply() {
        let python = AdviceQuestion { lang: AdviceLanguage::Python, ..question() };
        assert!(of(&python, "libweir, buffer of 64 KiB").unwrap().contains("C library"));
        let rust = AdviceQuestion { lang: AdviceLanguage::Rust, ..question() };
        assert!(of(&rust, "libweir, buffer of 64 KiB").unwrap().contains("its Rust bindings"));
        assert!(of(&question(), "copy inside the kernel").unwrap().contains("weir copy"));
        let shared = AdviceQuestion { sharers: 2, ..question() };
        assert!(of(&shared, "store into a shared mapping").is_some());
    }
}
