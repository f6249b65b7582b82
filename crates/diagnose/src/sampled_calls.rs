//! The function of a program that makes many small calls, by the samples of the recording.

use weir_model::trace::{CallSite, SampledCall, StreamCounts};

use crate::context::RuleContext;
use crate::language::is_interpreted;
use crate::text::own_functions;

/// A call is sampled at its begin, and its stream has the time of its end.
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
        let is_of = |call: &&SampledCall| {
            let at_s = call.call_site.at_s;
            (call.pid, call.fd, call.direction) == (stream.pid, stream.fd, stream.direction)
                && (stream.first_s - SLACK_S..=stream.last_s + SLACK_S).contains(&at_s)
        };
        let calls = self.recording.sampled_calls.iter().filter(is_of);
        let calls: Vec<_> = calls.map(|call| (&call.call_site, words(&call.call_site))).collect();
        let same = |words: &Option<String>| calls.iter().filter(|call| call.1 == *words).count();
        let (call_site, words) = calls.iter().max_by_key(|call| same(&call.1))?;
        words.is_some().then(|| SampledSite { call_site, samples: same(words), of: calls.len() })
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
        let functions = own_functions(self.call_site).unwrap_or_default();
        let samples = match (self.samples, self.of) {
            (1, 1) => "The one sampled call comes".into(),
            (samples, of) if samples == of => format!("All {of} sampled calls come"),
            (1, of) => format!("One of {of} sampled calls comes"),
            (samples, of) => format!("{samples} of {of} sampled calls come"),
        };
        format!("{samples} from {functions}.")
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
