//! The function of a program that makes many small calls, by the samples of the recording.

use weir_model::Direction;
use weir_model::trace::{CallSite, SampledCall, StreamCounts};

use crate::context::RuleContext;
use crate::language::is_interpreted;

/// Times of samples and of streams are from different clocks of the same machine; they differ by less.
const SLACK_S: f64 = 0.01;

/// The call site with most samples.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampledSite<'a> {
    /// One of its samples.
    pub call_site: &'a CallSite,
    /// Samples with the same function.
    samples: usize,
    /// Samples of the stream.
    of: usize,
}

impl RuleContext<'_> {
    /// Returns the program's own function that makes most of a stream's sampled calls. None without samples, without a name,
    /// and for interpreters, whose own functions say nothing about the script.
    pub fn sampled_site(&self, stream: &StreamCounts) -> Option<SampledSite<'_>> {
        if is_interpreted(self.language(stream.pid, stream.first_s)) {
            return None;
        }
        let reads = stream.direction == Direction::In;
        let is_of = |call: &&SampledCall| {
            let at_s = call.call_site.at_s;
            (call.pid, call.fd) == (stream.pid, stream.fd)
                && (call.direction == Direction::In) == reads
                && (stream.first_s - SLACK_S..=stream.last_s + SLACK_S).contains(&at_s)
        };
        let calls: Vec<&SampledCall> = self.recording.sampled_calls.iter().filter(is_of).collect();
        let same =
            |one: &CallSite| calls.iter().filter(|other| words(&other.call_site) == words(one)).count();
        let most = calls.iter().max_by_key(|call| same(&call.call_site))?;
        words(&most.call_site)?;
        Some(SampledSite { call_site: &most.call_site, samples: same(&most.call_site), of: calls.len() })
    }
}

/// Returns the innermost function of the program, if it has a name.
fn words(call_site: &CallSite) -> Option<String> {
    let frame = call_site.own_frames().next()?;
    frame.function.is_some().then(|| frame.words())
}

impl SampledSite<'_> {
    /// Returns the sentence of a finding.
    pub fn sentence(&self) -> String {
        let mut frames = self.call_site.own_frames();
        let function = frames.next().map_or(String::new(), |frame| frame.words());
        let caller =
            frames.next().map_or(String::new(), |caller| format!(", called from {}", caller.words()));
        let samples = match (self.samples, self.of) {
            (1, 1) => "The one sampled call comes".into(),
            (samples, of) if samples == of => format!("All {of} sampled calls come"),
            (1, of) => format!("One of {of} sampled calls comes"),
            (samples, of) => format!("{samples} of {of} sampled calls come"),
        };
        format!("{samples} from {function}{caller}.")
    }
}

#[cfg(test)]
mod tests {
    use weir_model::trace::Frame;

    use super::*;

    fn call_site(at_s: f64, function: Option<&str>) -> CallSite {
        let frame = |function: Option<&str>| Frame {
            function: function.map(Into::into),
            module: "/usr/bin/prog".into(),
            ..Frame::default()
        };
        CallSite { at_s, last: false, frames: vec![frame(function), frame(Some("main"))] }
    }

    #[test]
    fn the_sentence_counts_the_samples() {
        let site = call_site(0.5, Some("emit"));
        let sentence = |samples, of| SampledSite { call_site: &site, samples, of }.sentence();
        let ending = "from emit() in prog, called from main() in prog.";
        assert_eq!(sentence(1, 1), format!("The one sampled call comes {ending}"));
        assert_eq!(sentence(5, 5), format!("All 5 sampled calls come {ending}"));
        assert_eq!(sentence(3, 5), format!("3 of 5 sampled calls come {ending}"));
    }

    #[test]
    fn a_function_without_a_name_has_no_words() {
        assert_eq!(words(&call_site(0.5, None)), None);
        assert_eq!(words(&call_site(0.5, Some("emit"))).as_deref(), Some("emit() in prog"));
        assert_eq!(words(&CallSite::default()), None);
    }
}
