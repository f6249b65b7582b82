//! What is decided for programs and wishes.

use std::ffi::OsString;
use std::time::Duration;

use super::*;
use crate::plan::request::{BufferMode, CoalesceScope, StandardStream};

fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(Into::into).collect()
}

fn with(around: HostCapabilities, command: &str, request: RunRequest) -> Plan {
    plan(&words(command), &request, &around)
}

fn by(command: &str, request: RunRequest) -> Plan {
    with(HostCapabilities::default(), command, request)
}

fn lines() -> RunRequest {
    RunRequest { modes: vec![(StandardStream::Output, BufferMode::Line)], ..RunRequest::default() }
}

/// A static program of no language in particular: only its header counts.
fn still() -> tempfile::TempPath {
    use std::io::Write;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut header = [0u8; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    header[16] = 2;
    header[18] = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    header[20] = 1;
    header[52] = 64;
    file.write_all(&header).unwrap();
    file.into_temp_path()
}

#[test]
fn nothing_asked_is_the_recommendation() {
    let plan = by("cut -c1", RunRequest::default());
    assert_eq!(plan.outside.unwrap().delay, Some(RECOMMENDED_DELAY));
    assert!(plan.library.is_none() && plan.refusals().is_empty() && plan.remarks().is_empty());
}

#[test]
fn modes_of_a_dynamic_program_need_nobody_who_stays() {
    let plan = by("cut -c1", lines());
    assert_eq!(plan.library.unwrap().standard[1].as_deref(), Some("line"));
    assert!(plan.outside.is_none() && !plan.terminal);
}

#[test]
fn a_static_program_is_met_from_outside_or_refused() {
    let path = still();
    let command = path.to_str().unwrap();
    let plan = by(command, lines());
    assert_eq!(plan.outside.unwrap().delay, Some(STAND_IN_DELAY));
    assert_eq!((plan.remarks().len(), plan.refusals().len()), (1, 0));
    for request in [
        RunRequest { fix_order: true, ..RunRequest::default() },
        RunRequest { coalesce: Some(CoalesceScope::All), ..RunRequest::default() },
        RunRequest { modes: vec![(StandardStream::Output, BufferMode::Full(None))], ..RunRequest::default() },
        RunRequest { files: vec![("*".into(), BufferMode::Line)], ..RunRequest::default() },
    ] {
        let refusals = by(command, request.clone()).refusals();
        assert!(refusals.len() == 1 && refusals[0].contains("statically"), "{request:?}: {refusals:?}");
    }
}

#[test]
fn where_nobody_may_trace_a_terminal_stands_in() {
    let around = HostCapabilities { untraceable: Some("forbidden".into()), ..HostCapabilities::default() };
    let plan = with(around.clone(), "cut -c1", RunRequest::default());
    assert!(plan.terminal && plan.outside.is_none() && plan.remarks()[0].contains("forbidden"));
    let plan = with(around, "cut -c1", RunRequest { rescue: true, ..RunRequest::default() });
    assert!(plan.refusals()[0].contains("forbidden"));
}

#[test]
fn mawk_gets_its_option_once_and_only_where_it_waits() {
    let options = words("mawk -W interactive 1");
    if ResolvedProgram::of(&options).path.is_none() {
        return; // no mawk here; tests/run_matrix.rs says so
    }
    assert_eq!(by("mawk 1", lines()).command, options);
    assert_eq!(by("mawk -W interactive 1", lines()).command, options);
    let whole = HostCapabilities { input_is_whole: true, ..HostCapabilities::default() };
    let delay = RunRequest { max_delay: Some(Duration::from_millis(5)), ..RunRequest::default() };
    assert_eq!(with(whole, "mawk 1", delay).command, words("mawk 1"));
}

#[test]
fn gathering_and_writing_ahead_exclude_each_other() {
    let request = RunRequest {
        coalesce: Some(CoalesceScope::All),
        max_delay: Some(Duration::from_millis(5)),
        fix_fork: true,
        ..RunRequest::default()
    };
    let plan = by("cut -c1", request);
    assert_eq!(plan.outside, Some(SupervisionPlan::default()));
    assert_eq!(plan.gathered_delay, Duration::from_millis(5));
    let effect = |wish: &str| plan.rows.iter().find(|row| row.wish.starts_with(wish)).unwrap().effect;
    assert_eq!((effect("--max-delay"), effect("--fix-fork")), (Effect::Part, Effect::StandIn));
}

#[test]
fn what_is_not_gathered_is_said() {
    let request = RunRequest { coalesce: Some(CoalesceScope::All), ..RunRequest::default() };
    for (name, why) in [("node", "several threads"), ("java", "several threads"), ("ruby", "SIGSYS")] {
        let refusals = by(name, request.clone()).refusals();
        assert!(refusals.len() == 1 && refusals[0].contains(why), "{name}: {refusals:?}");
    }
    assert_eq!(by("cut -c1", request).rows[0].effect, Effect::Whole);
}

#[test]
fn one_hook_does_not_promise_two_things() {
    let request = RunRequest {
        modes: vec![(StandardStream::Output, BufferMode::Full(None))],
        max_delay: Some(Duration::from_millis(100)),
        ..RunRequest::default()
    };
    let plan = by("tclsh x", request.clone());
    let row = plan.rows.iter().find(|row| row.wish.starts_with("--max-delay")).unwrap();
    assert!(row.effect == Effect::StandIn && row.text.contains("buffer is full"), "{row:?}");
    assert_eq!(plan.hooks.as_deref(), Some("full"));
    // Ruby's buffer is full anyway, so its hook is free to keep the delay.
    let plan = by("ruby x", request);
    assert_eq!(plan.hooks.as_deref(), Some("delay:0.1"));
}

#[test]
fn a_shell_gives_hooks_and_variables_to_what_it_runs() {
    let plan = by(
        "sh -c true",
        RunRequest { modes: vec![(StandardStream::Output, BufferMode::None)], ..RunRequest::default() },
    );
    let place = InjectedFiles { library: None, hooks: Some("/h".into()) };
    let settings = plan.settings(&place, |_| None);
    let get =
        |name: &str| settings.iter().rev().find(|(of, _)| of == name).and_then(|(_, value)| value.clone());
    assert_eq!(get("PYTHONUNBUFFERED"), Some("1".into()));
    assert_eq!(get("RUBYLIB"), Some("/h/ruby".into()));
    assert_eq!(get("WEIR_HOOK"), Some("none".into()));
}
