//! Processes of the command that run on after it has ended, as a daemon does: weir no longer observes them.

use weir_model::Untrusted;
use weir_model::trace::{Exit, Process};
use weir_sys::{proc, process_status};
use weir_trace_api::TraceTarget;

/// Returns the sentence about the processes that still run of a command that has ended; None if there are none.
pub(crate) fn survivors_sentence(
    target: &TraceTarget,
    exit: Option<Exit>,
    processes: &[Process],
) -> Option<String> {
    if matches!(target, TraceTarget::Process(_)) || exit.is_none() {
        return None;
    }
    let unended = processes.iter().filter(|process| process.ended_s.is_none() && runs(process));
    let running: Vec<(u32, &Untrusted)> = unended.map(|process| (process.pid, process.comm())).collect();
    sentence(&running)
}

/// Returns whether a process still runs its program. The number may be that of another process meanwhile.
fn runs(process: &Process) -> bool {
    let state = process_status::read(process.pid).map(|status| status.state);
    state.is_some_and(|state| !matches!(state, b'Z' | b'X')) && proc::comm(process.pid) == *process.comm()
}

fn sentence(running: &[(u32, &Untrusted)]) -> Option<String> {
    let (&(pid, comm), others) = running.split_first()?;
    Some(match others.len() {
        0 => format!("what {comm} ({pid}) does from now on: it runs on; weir trace -p {pid} observes it"),
        count => {
            let others =
                if count == 1 { "another process".into() } else { format!("{count} other processes") };
            format!(
                "what {comm} ({pid}) and {others} do from now on: they run on; weir trace -p {pid} observes the first"
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use weir_model::trace::Image;

    use super::*;

    #[test]
    fn a_process_that_runs_on_is_named() {
        let own = std::process::id();
        let named = |pid, comm: Untrusted, ended_s| {
            let image = Image { comm, ..Image::default() };
            let process = Process { pid, images: vec![image], ended_s, ..Process::default() };
            let command = TraceTarget::Command(vec!["d".into()]);
            let running = [process];
            assert_eq!(survivors_sentence(&command, None, &running), None, "the command has not ended");
            survivors_sentence(&command, Some(Exit::Code(0)), &running)
        };
        let expected = format!("({own}) does from now on: it runs on; weir trace -p {own} observes it");
        assert!(named(own, proc::comm(own), None).is_some_and(|text| text.ends_with(&expected)));
        assert_eq!(named(own, proc::comm(own), Some(0.1)), None, "it has ended");
        assert_eq!(named(own, "another".into(), None), None, "its number was given to another process");
    }

    #[test]
    fn many_processes_are_counted() {
        let comm = Untrusted::from("d");
        let of = |count: u32| sentence(&(1..=count).map(|pid| (pid, &comm)).collect::<Vec<_>>());
        assert_eq!(of(0), None);
        assert!(
            of(2).is_some_and(|text| text.starts_with("what d (1) and another process do from now on: "))
        );
        assert!(of(4).is_some_and(|text| text.contains("and 3 other processes do ")));
    }
}
