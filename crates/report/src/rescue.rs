//! Sentences about rescued bytes, for `weir run`.

use weir_model::Size;
use weir_model::run::{RescuedBytes, RunOutcome};

/// Returns one line for each stream whose bytes weir rescued.
pub fn rescue_lines(outcome: &RunOutcome) -> Vec<String> {
    outcome.rescued.iter().map(line).collect()
}

fn line(rescued: &RescuedBytes) -> String {
    let RescuedBytes { pid, comm, fd, path, bytes, saved, .. } = rescued;
    let bytes = format!("{} of {comm} ({pid}), fd {fd} ({path})", Size(*bytes));
    match saved {
        None => format!("rescued {bytes}"),
        Some(saved) => format!("saved {bytes} in {}: {}", saved.path, saved.why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::run::SavedFile;
    use weir_model::trace::Exit;

    #[test]
    fn rescued_bytes_are_where_they_belong_or_in_a_file() {
        let rescued = |saved| RescuedBytes {
            pid: 7,
            comm: "sed".into(),
            fd: 1,
            path: "/tmp/out".into(),
            bytes: 40,
            exit: Exit::Signal(9),
            saved,
        };
        let saved = SavedFile { path: "/tmp/saved".into(), why: "the pipe is closed".into() };
        let outcome = RunOutcome {
            exit: Exit::Signal(9),
            emitted_bytes: 0,
            rescued: vec![rescued(None), rescued(Some(saved))],
            limitations: Vec::new(),
        };
        let expected = [
            "rescued 40 B of sed (7), fd 1 (/tmp/out)",
            "saved 40 B of sed (7), fd 1 (/tmp/out) in /tmp/saved: the pipe is closed",
        ];
        assert_eq!(rescue_lines(&outcome), expected);
    }
}
