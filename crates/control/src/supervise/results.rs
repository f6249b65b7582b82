//! The results of a run that grow with its processes. A run can have millions, so that only the first ones are listed.

use weir_model::run::RescuedBytes;

use super::tracees::Tracees;

/// The most rescues, and the most sentences, that are listed: some megabytes, and more than a user reads.
const MAX_LISTED: usize = 10_000;

/// The number of results that are not listed.
#[derive(Debug, Default)]
pub(super) struct UnlistedResults {
    rescues: u64,
    rescued_bytes: u64,
    sentences: u64,
}

impl Tracees {
    /// Adds a sentence to the outcome's limitations, unless it is there.
    pub fn add_limitation(&mut self, sentence: String) {
        if self.limitations.len() < MAX_LISTED {
            self.limitations.insert(sentence);
        } else if !self.limitations.contains(&sentence) {
            self.unlisted.sentences += 1;
        }
    }

    /// Adds rescued bytes to the outcome, unless there are none.
    pub(crate) fn add_rescued(&mut self, rescued: RescuedBytes) {
        if rescued.bytes == 0 {
            return;
        }
        if self.rescued.len() < MAX_LISTED {
            return self.rescued.push(rescued);
        }
        self.unlisted.rescues += 1;
        self.unlisted.rescued_bytes += rescued.bytes;
    }

    /// Returns sentences about the results that are not listed.
    pub(super) fn unlisted_sentences(&self) -> Vec<String> {
        let UnlistedResults { rescues, rescued_bytes, sentences } = self.unlisted;
        let rescues = (rescues > 0)
            .then(|| format!("{rescues} more rescues, of {rescued_bytes} bytes in all, are not listed"));
        let sentences = (sentences > 0).then(|| format!("{sentences} more such sentences are not listed"));
        rescues.into_iter().chain(sentences).collect()
    }
}

#[cfg(test)]
mod tests {
    use weir_model::trace::Exit;

    use super::*;

    #[test]
    fn the_results_of_many_processes_are_counted() {
        let mut tracees = Tracees::new(1, None).expect("a timer");
        for pid in 0..MAX_LISTED as u32 + 3 {
            let (comm, path) = ("one".into(), "/file".into());
            tracees.add_limitation(format!("{pid}"));
            tracees.add_rescued(RescuedBytes {
                pid,
                comm,
                fd: 1,
                path,
                bytes: 5,
                exit: Exit::Signal(9),
                saved: None,
            });
        }
        tracees.add_limitation("0".into());
        assert_eq!((tracees.rescued.len(), tracees.limitations.len()), (MAX_LISTED, MAX_LISTED));
        assert_eq!(
            tracees.unlisted_sentences(),
            ["3 more rescues, of 15 bytes in all, are not listed", "3 more such sentences are not listed"]
        );
    }
}
